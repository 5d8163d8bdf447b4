/* Every symbol of this folder gets the prefix lk_, so that none of them can meet the system's. */
#ifndef LK_LIBM_NAMES_H
#define LK_LIBM_NAMES_H

/* Fused steps would make the bits depend on the machine: musl picks other code where these are defined. */
#undef __FP_FAST_FMA
#undef __FP_FAST_FMAF

#define hidden __attribute__((visibility("hidden")))

#define exp lk_exp
#define log lk_log
#define pow lk_pow
#define sin lk_sin
#define cos lk_cos
#define tan lk_tan
#define acos lk_acos
#define atan lk_atan
#define log1p lk_log1p
#define expm1 lk_expm1
#define scalbn lk_scalbn
#define floor lk_floor
#define __sin lk_kernel_sin
#define __cos lk_kernel_cos
#define __tan lk_kernel_tan
#define __rem_pio2 lk_rem_pio2
#define __rem_pio2_large lk_rem_pio2_large
#define __exp_data lk_exp_data
#define __log_data lk_log_data
#define __pow_log_data lk_pow_log_data
#define __math_divzero lk_math_divzero
#define __math_invalid lk_math_invalid
#define __math_oflow lk_math_oflow
#define __math_uflow lk_math_uflow
#define __math_xflow lk_math_xflow

#endif
