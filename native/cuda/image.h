// The compiled kernels that the library carries.
#pragma once

namespace latentkit::cuda {

/* The argument of cuModuleLoadData. */
const void *image();
/* "75,80,86,89,90,100,120"; "" where there is no image. */
const char *architectures();
/* "13.0": the compiler of the image. */
const char *compiler();

}  // namespace latentkit::cuda
