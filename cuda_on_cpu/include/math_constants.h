// The CUDART_ constants: those in single precision end in _F, those in double precision have no
// suffix.
#pragma once

#include <limits>
#include <numbers>

#include "cuda_on_cpu/needs_cpp20.h"

inline constexpr float CUDART_INF_F = std::numeric_limits<float>::infinity();
inline constexpr float CUDART_NAN_F = std::numeric_limits<float>::quiet_NaN();
inline constexpr float CUDART_MIN_DENORM_F = std::numeric_limits<float>::denorm_min();
inline constexpr float CUDART_MAX_NORMAL_F = std::numeric_limits<float>::max();
inline constexpr float CUDART_NEG_ZERO_F = -0.0f;
inline constexpr float CUDART_ZERO_F = 0.0f;
inline constexpr float CUDART_ONE_F = 1.0f;
inline constexpr float CUDART_SQRT_HALF_F = std::numbers::sqrt2_v<float> / 2;
inline constexpr float CUDART_SQRT_TWO_F = std::numbers::sqrt2_v<float>;
inline constexpr float CUDART_THIRD_F = 1.0f / 3;
inline constexpr float CUDART_PIO4_F = std::numbers::pi_v<float> / 4;
inline constexpr float CUDART_PIO2_F = std::numbers::pi_v<float> / 2;
inline constexpr float CUDART_3PIO4_F = static_cast<float>(std::numbers::pi * 3 / 4);
inline constexpr float CUDART_2_OVER_PI_F = static_cast<float>(2 / std::numbers::pi);
inline constexpr float CUDART_SQRT_2_OVER_PI_F =
    static_cast<float>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
inline constexpr float CUDART_PI_F = std::numbers::pi_v<float>;
inline constexpr float CUDART_L2E_F = std::numbers::log2e_v<float>;
inline constexpr float CUDART_L2T_F = static_cast<float>(std::numbers::ln10 / std::numbers::ln2);
inline constexpr float CUDART_LG2_F = static_cast<float>(std::numbers::ln2 / std::numbers::ln10);
inline constexpr float CUDART_LGE_F = std::numbers::log10e_v<float>;
inline constexpr float CUDART_LN2_F = std::numbers::ln2_v<float>;
inline constexpr float CUDART_LNT_F = std::numbers::ln10_v<float>;
inline constexpr float CUDART_LNPI_F = 1.14472988584940017f;
inline constexpr float CUDART_TWO_TO_M126_F = 0x1p-126f;
inline constexpr float CUDART_TWO_TO_126_F = 0x1p126f;
inline constexpr float CUDART_NORM_HUGE_F = std::numeric_limits<float>::max();
inline constexpr float CUDART_TWO_TO_23_F = 0x1p23f;
inline constexpr float CUDART_TWO_TO_24_F = 0x1p24f;
inline constexpr float CUDART_TWO_TO_31_F = 0x1p31f;
inline constexpr float CUDART_TWO_TO_32_F = 0x1p32f;

inline constexpr double CUDART_INF = std::numeric_limits<double>::infinity();
inline constexpr double CUDART_NAN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double CUDART_NEG_ZERO = -0.0;
inline constexpr double CUDART_MIN_DENORM = std::numeric_limits<double>::denorm_min();
inline constexpr double CUDART_ZERO = 0.0;
inline constexpr double CUDART_ONE = 1.0;
inline constexpr double CUDART_SQRT_TWO = std::numbers::sqrt2;
inline constexpr double CUDART_SQRT_HALF = std::numbers::sqrt2 / 2;
inline constexpr double CUDART_THIRD = 1.0 / 3;
inline constexpr double CUDART_TWOTHIRD = 2.0 / 3;
inline constexpr double CUDART_PIO4 = std::numbers::pi / 4;
inline constexpr double CUDART_PIO2 = std::numbers::pi / 2;
inline constexpr double CUDART_3PIO4 = std::numbers::pi * 3 / 4;
inline constexpr double CUDART_2_OVER_PI = 2 / std::numbers::pi;
inline constexpr double CUDART_PI = std::numbers::pi;
inline constexpr double CUDART_SQRT_2PI = 2.5066282746310005024;
inline constexpr double CUDART_SQRT_2_OVER_PI = 0.79788456080286535588;
inline constexpr double CUDART_LN2 = std::numbers::ln2;
inline constexpr double CUDART_LNT = std::numbers::ln10;
inline constexpr double CUDART_LNPI = 1.1447298858494001741;
inline constexpr double CUDART_LG2 = 0.30102999566398119521;
inline constexpr double CUDART_LGE = std::numbers::log10e;
inline constexpr double CUDART_L2E = std::numbers::log2e;
inline constexpr double CUDART_L2T = 3.3219280948873623479;
inline constexpr double CUDART_TWO_TO_23 = 0x1p23;
inline constexpr double CUDART_TWO_TO_52 = 0x1p52;
inline constexpr double CUDART_TWO_TO_53 = 0x1p53;
