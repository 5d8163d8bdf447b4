// The functions of the table by subject; engine_cuda.h documents each.
#pragma once

#include "engine_cuda.h"

namespace latentkit::cuda {

void fill_memory(engine_cuda_table *table);
void fill_elementwise(engine_cuda_table *table);
void fill_noise(engine_cuda_table *table);
void fill_planes(engine_cuda_table *table);
void fill_reduce(engine_cuda_table *table);
void fill_images(engine_cuda_table *table);

}  // namespace latentkit::cuda
