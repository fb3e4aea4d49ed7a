// The network as a whole: its gradient against differences of the loss, and a short training.
#include "lenet_training.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using day33::Digits;
using day33::LeNet;

constexpr auto& kAllKernels = LeNet::kAllKernels;

// One for each way of taking images and of moving parameters: the versions of 34 launches have both
// in common.
constexpr LeNet::Kernels kStepKernels[] = {LeNet::Kernels::kOfLayers, LeNet::Kernels::kBlockPerImage,
                                           LeNet::Kernels::kOneLaunch, LeNet::Kernels::kOfPictures};

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
void expect_the_gradient_of_the_layers(LeNet::Kernels kernels) {
    const Digits digits = day33::draw_digits(17, 11);
    LeNet layers(17, digits, 4, LeNet::Kernels::kOfLayers);
    LeNet others(17, digits, 4, kernels);
    const std::vector<float> expected = layers.gradient_of_first_batch();
    const std::vector<float> got = others.gradient_of_first_batch();
    EXPECT_NEAR(others.loss(), layers.loss(), 1e-6);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[i], 1e-5 + 1e-4 * std::abs(expected[i])) << "parameter " << i;
}
TEST_F(Training, TheGradientIsThatOfTheLayers) {
    expect_the_gradient_of_the_layers(LeNet::Kernels::kOfPictures);
}
TEST_F(Training, TheGradientOfParallelSumsIsThatOfTheLayers) {
    expect_the_gradient_of_the_layers(LeNet::Kernels::kParallelSums);
}
TEST_F(Training, TheGradientOfSkippedProductsIsThatOfTheLayers) {
    expect_the_gradient_of_the_layers(LeNet::Kernels::kSkippedProducts);
}
TEST_F(Training, TheGradientOfWarpSumsIsThatOfTheLayers) {
    expect_the_gradient_of_the_layers(LeNet::Kernels::kWarpSums);
}
TEST_F(Training, TheGradientOfABlockPerImageIsThatOfTheLayers) {
    expect_the_gradient_of_the_layers(LeNet::Kernels::kBlockPerImage);
}
TEST_F(Training, TheGradientOfOneLaunchIsThatOfTheLayers) {
    expect_the_gradient_of_the_layers(LeNet::Kernels::kOneLaunch);
}

// With weights of 0 and biases of 1, all outputs of the first two layers' windows are equal. The
// gradient goes to the first one.
TEST_F(Training, OfEqualOutputsTheFirstGetsTheGradient) {
    const Digits digits = day33::draw_digits(2, 13);
    LeNet layers(2, digits, 4, LeNet::Kernels::kOfLayers);
    std::vector<float> parameters = layers.parameters();
    std::fill_n(parameters.begin(), 150, 0.0f);
    std::fill_n(parameters.begin() + 152, 6, 1.0f);
    layers.set_parameters(parameters);
    const std::vector<float> expected = layers.gradient_of_first_batch();
    for (const auto kernels : kAllKernels) {
        LeNet others(2, digits, 4, kernels);
        others.set_parameters(parameters);
        const std::vector<float> got = others.gradient_of_first_batch();
        for (std::size_t i = 0; i < got.size(); ++i)
            ASSERT_NEAR(got[i], expected[i], 1e-5 + 1e-4 * std::abs(expected[i])) << "parameter " << i;
    }
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

// With all weights 0, the scores are the last biases: they choose the answer, and the loss is
// log(sum of exp) - score. Scores of +-300 have no exponential in float: it must be that of the
// difference from the largest score.
std::vector<float> only_biases(const LeNet& net, int answer) {
    std::vector<float> values(net.parameters().size());
    for (int i = 0; i < 10; ++i)
        values[values.size() - 12 + static_cast<std::size_t>(i)] = i == answer ? 300.0f : -300.0f;
    return values;
}

TEST_F(Training, LargeScoresHaveAFiniteLoss) {
    const Digits digits = day33::draw_digits(3, 10);
    for (const auto kernels : kAllKernels) {
        LeNet net(3, digits, 1, kernels);
        for (const int answer : {digits.labels[0], (digits.labels[0] + 1) % 10}) {
            net.set_parameters(only_biases(net, answer));
            const std::vector<float> gradient = net.gradient_of_first_batch();
            double loss = 0;
            std::vector<float> expected(10);
            for (const int label : digits.labels) {
                loss += label == answer ? 0 : 600.0 / 3;
                expected[static_cast<std::size_t>(answer)] += 1.0f / 3;
                expected[static_cast<std::size_t>(label)] -= 1.0f / 3;
            }
            EXPECT_NEAR(net.loss(), loss, 1e-3);
            for (std::size_t i = 0; i < 10; ++i)
                EXPECT_NEAR(gradient[gradient.size() - 12 + i], expected[i], 1e-6) << "score " << i;
        }
    }
}

// Five digits in batches of two: the fifth does not count.
TEST_F(Training, AccuracyIsTheShareOfTheRightAnswersInFullBatches) {
    const Digits digits = day33::draw_digits(5, 14);
    LeNet net(2, digits, 2);
    for (int answer = 0; answer < 10; ++answer) {
        net.set_parameters(only_biases(net, answer));
        const auto right = std::count(digits.labels.begin(), digits.labels.begin() + 4, answer);
        EXPECT_EQ(net.accuracy(digits), static_cast<double>(right) / 4) << "answer " << answer;
    }
}

// Steps take one batch after the other, and begin again after the last. The digit that is left over
// is in none of them.
TEST_F(Training, EachStepTakesTheNextBatch) {
    const Digits digits = day33::draw_digits(5, 15);
    constexpr std::ptrdiff_t kPixels = 28 * 28;
    for (const auto kernels : kStepKernels) {
        LeNet net(2, digits, 3, kernels);
        const std::vector<float> parameters = net.parameters();
        const auto loss_of_batch = [&](std::ptrdiff_t batch) {
            const auto pictures = digits.pictures.begin() + 2 * kPixels * batch;
            const auto labels = digits.labels.begin() + 2 * batch;
            LeNet alone(2, {{pictures, pictures + 2 * kPixels}, {labels, labels + 2}}, 3, kernels);
            static_cast<void>(alone.gradient_of_first_batch());
            return alone.loss();
        };
        const double losses[] = {loss_of_batch(0), loss_of_batch(1)};
        EXPECT_NE(losses[0], losses[1]);
        for (int step = 0; step < 3; ++step) {
            net.set_parameters(parameters);
            net.step(nullptr);
            EXPECT_EQ(net.loss(), losses[step % 2]) << "step " << step;
        }
        // The counter is at the second batch: this sets it back, and is no step itself.
        static_cast<void>(net.gradient_of_first_batch());
        net.set_parameters(parameters);
        net.step(nullptr);
        EXPECT_EQ(net.loss(), losses[0]);
    }
}

// v = 0.9 v - 0.02 g, and parameters += v. The first step has no velocity yet.
TEST_F(Training, AStepMovesAgainstTheGradientWithMomentum) {
    const Digits digits = day33::draw_digits(2, 16);
    for (const auto kernels : kStepKernels) {
        LeNet net(2, digits, 4, kernels);
        std::vector<float> velocity(net.parameters().size());
        for (int step = 0; step < 2; ++step) {
            const std::vector<float> before = net.parameters();
            const std::vector<float> gradient = net.gradient_of_first_batch();
            net.step(nullptr);
            const std::vector<float> after = net.parameters();
            for (std::size_t i = 0; i < after.size(); ++i) {
                velocity[i] = 0.9f * velocity[i] - 0.02f * gradient[i];
                ASSERT_NEAR(after[i], before[i] + velocity[i], 1e-6)
                    << "step " << step << ", parameter " << i;
            }
        }
    }
}

// Uniform with a variance of 2 / (inputs of an output).
TEST_F(Training, WeightsBeginWithTheVarianceOfTheirLayer) {
    const LeNet net(1, day33::draw_digits(1, 17), 5);
    const std::vector<float> parameters = net.parameters();
    struct Part {
        std::size_t weights;
        std::size_t biases;
        double inputs;
    };
    std::size_t begin = 0;
    for (const Part& part : {Part{150, 6, 25}, Part{2400, 16, 150}, Part{48000, 120, 400},
                             Part{10080, 84, 120}, Part{840, 10, 84}}) {
        double squares = 0;
        for (std::size_t i = begin; i < begin + part.weights; ++i)
            squares += static_cast<double>(parameters[i]) * static_cast<double>(parameters[i]);
        EXPECT_NEAR(squares / static_cast<double>(part.weights) * part.inputs, 2, 0.4);
        begin += (part.weights + 3) / 4 * 4 + (part.biases + 3) / 4 * 4;
    }
    EXPECT_EQ(begin, parameters.size());
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
