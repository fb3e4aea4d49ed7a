// Day 37, beyond: a test image of ellipses, whose samples of k-space are known exactly, and paths
// through k-space.
#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

#include "mri.hpp"

namespace day37 {

// In fields of view: the centre, the half axes, the angle of the first half axis in degrees, and
// what it adds to the image.
struct Ellipse {
    double x, y, half_a, half_b, degrees, value;
};

// A head, about as L. Shepp and B. Logan drew one in 1974: a skull, a brain, and some details. The
// ellipses are this course's own.
std::span<const Ellipse> phantom();

// The mean of the image over a voxel of an n x n grid, from 4 x 4 points; x fastest.
std::vector<float> phantom_image(std::size_t n);

// The sample at (kx, ky): the Fourier transform of the ellipses, without any grid.
std::complex<double> phantom_sample(double kx, double ky);

// A scan of the phantom along a spiral of `turns` turns, from the middle of k-space to radius n /
// 2, in equal times per turn. The spiral is denser in the middle. So each sample has a weight w,
// the area of k-space that it stands for over the number of voxels. phi is sqrt(w), and d is
// sqrt(w) times the sample of an image of n x n voxels of unit area. Then F^H d is an image, if a
// blurred one, and least squares count all areas alike.
HostSamples spiral_scan(std::size_t n, std::size_t samples, double turns);

}  // namespace day37
