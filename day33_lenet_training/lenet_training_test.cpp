// The network as a whole: its gradient against differences of the loss, and a short training.
#include "lenet_training.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using day33::Digits;
using day33::LeNet;

class Training : public course::DeviceTest {};

TEST(DrawnDigits, AreTheSameForTheSameSeedAndShowInk) {
    const Digits digits = day33::draw_digits(50, 1);
    EXPECT_EQ(digits.pictures, day33::draw_digits(50, 1).pictures);
    EXPECT_NE(digits.pictures, day33::draw_digits(50, 2).pictures);
    constexpr std::size_t kPixels = 28 * 28;
    for (std::size_t i = 0; i < 50; ++i) {
        EXPECT_GE(digits.labels[i], 0);
        EXPECT_LE(digits.labels[i], 9);
        int dark = 0;
        for (std::size_t pixel = 0; pixel < kPixels; ++pixel)
            dark += digits.pictures[i * kPixels + pixel] > 0.5f;
        EXPECT_GT(dark, 15) << "digit " << i;
        EXPECT_LT(dark, 300) << "digit " << i;
    }
}

// For the weights and for the biases of each layer: in a random direction d, the loss changes by
// the sum of g d.
TEST_F(Training, TheGradientIsTheSlopeOfTheLoss) {
    LeNet net(4, day33::draw_digits(4, 3), 5);
    const std::vector<float> parameters = net.parameters();
    const std::vector<float> gradient = net.gradient_of_first_batch();
    // conv 6x1x5x5, conv 16x6x5x5, then 120x400, 84x120, 10x84
    const std::vector<std::size_t> parts{150, 6, 2400, 16, 48000, 120, 10080, 84, 840, 10};
    course::Random random(28);
    std::size_t begin = 0;
    for (const std::size_t size : parts) {
        SCOPED_TRACE("parameters " + std::to_string(begin) + " and following");
        std::vector<double> direction(size);
        double slope = 0;
        double squares = 0;
        for (std::size_t i = 0; i < size; ++i) {
            const double g = gradient[begin + i];
            direction[i] = (random.below(2) == 0 ? 1 : -1) / std::sqrt(static_cast<double>(size));
            slope += g * direction[i];
            squares += g * g;
        }
        EXPECT_GT(std::sqrt(squares), 0.01);
        const auto loss_at = [&](double distance) {
            std::vector<float> moved(parameters);
            for (std::size_t i = 0; i < size; ++i)
                moved[begin + i] += static_cast<float>(distance * direction[i]);
            net.set_parameters(moved);
            static_cast<void>(net.gradient_of_first_batch());
            return net.loss();
        };
        constexpr double kStep = 0.001;
        EXPECT_NEAR((loss_at(kStep) - loss_at(-kStep)) / (2 * kStep), slope, 0.03 * std::abs(slope) + 2e-4);
        begin += (size + 3) / 4 * 4;  // each part begins at a multiple of 16 bytes
    }
    EXPECT_EQ(begin, parameters.size());
}

// The scores of an untrained network are about equal: the loss begins near log(10).
TEST_F(Training, TheLossFallsAndTheSameSeedGivesTheSameBits) {
    const Digits digits = day33::draw_digits(8, 7);  // one batch, again and again
    const auto train = [&](int steps) {
        LeNet net(8, digits, 1);
        std::vector<double> losses;
        for (int step = 0; step < steps; ++step) {
            net.step(nullptr);
            losses.push_back(net.loss());
        }
        return losses;
    };
    const std::vector<double> losses = train(8);
    EXPECT_EQ(train(2), std::vector<double>(losses.begin(), losses.begin() + 2));
    EXPECT_GT(losses.front(), 1.5);
    EXPECT_LT(losses.front(), 4);
    EXPECT_LT(losses.back(), 0.7 * losses.front());
}

// The gradient of the last biases is the sum of the scores' gradients: nothing else of the way back
// is in it. They are the last parameters, ten of twelve.
TEST_F(Training, TheLossAndTheGradientOfTheScoresAreThoseOfPictures) {
    const Digits digits = day33::draw_digits(17, 11);
    LeNet layers(17, digits, 4, LeNet::Kernels::kOfLayers);
    LeNet pictures(17, digits, 4, LeNet::Kernels::kOfPictures);
    const std::vector<float> expected = pictures.gradient_of_first_batch();
    const std::vector<float> got = layers.gradient_of_first_batch();
    EXPECT_NEAR(layers.loss(), pictures.loss(), 1e-6);
    for (std::size_t i = got.size() - 12; i < got.size() - 2; ++i)
        EXPECT_NEAR(got[i], expected[i], 1e-6) << "parameter " << i;
}

// Two ways to the same gradient. 17 pictures: one more than the warps that share them. The sums are
// in another order, so they round differently.
TEST_F(Training, TheGradientIsThatOfTheLayers) {
    const Digits digits = day33::draw_digits(17, 11);
    LeNet layers(17, digits, 4, LeNet::Kernels::kOfLayers);
    LeNet pictures(17, digits, 4, LeNet::Kernels::kOfPictures);
    const std::vector<float> expected = layers.gradient_of_first_batch();
    const std::vector<float> got = pictures.gradient_of_first_batch();
    EXPECT_NEAR(pictures.loss(), layers.loss(), 1e-6);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[i], 1e-5 + 1e-4 * std::abs(expected[i])) << "parameter " << i;
}

// Two batches, so that the counter goes round, and parameters move with momentum.
TEST_F(Training, StepsAreThoseOfTheLayers) {
    const Digits digits = day33::draw_digits(4, 12);
    LeNet layers(2, digits, 6, LeNet::Kernels::kOfLayers);
    LeNet pictures(2, digits, 6, LeNet::Kernels::kOfPictures);
    for (int step = 0; step < 3; ++step) {
        layers.step(nullptr);
        pictures.step(nullptr);
        EXPECT_NEAR(pictures.loss(), layers.loss(), 1e-4) << "step " << step;
    }
    const std::vector<float> expected = layers.parameters();
    const std::vector<float> got = pictures.parameters();
    for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[i], 1e-4) << "parameter " << i;
}

TEST_F(Training, AccuracyCountsRightAnswers) {
    const Digits digits = day33::draw_digits(8, 9);
    LeNet net(8, digits, 2);
    const double before = net.accuracy(digits);
    EXPECT_GE(before, 0);
    EXPECT_LE(before, 1);
    EXPECT_EQ(course::refusal([&] { LeNet(9, digits, 2); }),
              "LeNet: batch is 9 and there are 8 pictures; expected 1 to all of them");
}

}  // namespace
