/* Elementary functions in double whose bits are the same on every machine: musl's, see README.md. */
#ifndef LK_LIBM_H
#define LK_LIBM_H
#ifdef __cplusplus
extern "C" {
#endif
double lk_exp(double x);
double lk_log(double x);
double lk_pow(double x, double y);
double lk_sin(double x);
double lk_cos(double x);
double lk_tan(double x);
double lk_acos(double x);
double lk_atan(double x);
double lk_log1p(double x);
double lk_expm1(double x);
#ifdef __cplusplus
}
#endif
#endif
