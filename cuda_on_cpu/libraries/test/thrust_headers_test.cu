// What NVIDIA's headers of Thrust bring along: <thrust/sort.h> execution policies, extremes,
// iterators.
#include <thrust/sort.h>

// Beside those that include it themselves.
#include <gtest/gtest.h>
#include <thrust/device_vector.h>
#include <thrust/inner_product.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/set_operations.h>
#include <thrust/unique.h>

#include <vector>

namespace {

TEST(ThrustHeaders, SortBringsPoliciesExtremesAndIterators) {
    const std::vector<int> values = {3, 1, 2};
    thrust::device_vector<int> device(values.begin(), values.end());
    thrust::sort(thrust::device, device.begin(), device.end());
    EXPECT_EQ(device[0], 1);
    const auto extremes = thrust::minmax_element(device.begin(), device.end());
    EXPECT_EQ(*extremes.first, 1);
    EXPECT_EQ(*extremes.second, 3);
    int numbers[] = {2, 1};
    thrust::sort(thrust::seq, numbers, numbers + 2);
    EXPECT_EQ(numbers[0], 1);
    EXPECT_EQ(*thrust::constant_iterator<int>(5) + *thrust::counting_iterator<int>(2), 7);
    EXPECT_EQ(thrust::reduce(device.begin(), device.end()), 6);
}

}  // namespace
