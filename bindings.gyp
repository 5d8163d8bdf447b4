# The build of CMakeLists.txt for node-gyp, for those who cannot run CMake: copy it to binding.gyp, then node-gyp build.
# Not named binding.gyp, since npm compiles every package that holds one. Written by scripts/bindings-gyp.mjs.
{
  "targets": [
    {
      "target_name": "latentkit",
      "type": "loadable_module",
      "sources": [
        "native/addon/addon.cpp",
        "native/addon/args.cpp",
        "native/addon/cuda.cpp",
        "native/addon/worker.cpp",
        "native/addon/operations/elementary.cpp",
        "native/addon/operations/images.cpp",
        "native/addon/operations/noise.cpp",
        "native/addon/operations/png_decode.cpp",
        "native/addon/operations/png_encode.cpp",
        "native/addon/operations/png_filter.cpp",
        "native/addon/operations/runtime.cpp",
        "native/addon/operations/sampling.cpp",
        "native/addon/operations/system.cpp",
        "native/addon/operations/tensors.cpp",
        "native/addon/operations/filters.cpp",
        "native/addon/operations/weights.cpp"
      ],
      "dependencies": [
        "latentkit_blake3",
        "latentkit_deflate",
        "latentkit_core"
      ],
      "include_dirs": [
        "native/addon",
        "native/include",
        "native/third_party/libm",
        "native/include",
        "<!(node -p \"require('node-addon-api').include_dir\")"
      ],
      "defines": [
        "NAPI_VERSION=8",
        "NODE_ADDON_API_CPP_EXCEPTIONS",
        "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
      ],
      "cflags_cc": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-fvisibility-inlines-hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-Wall",
        "-Wextra",
        "-std=gnu++20"
      ],
      "cflags_cc!": [
        "-fno-exceptions",
        "-fno-rtti"
      ],
      "libraries": [
        "-ldl"
      ],
      "conditions": [
        [
          "OS=='linux'",
          {
            "ldflags": [
              "-Wl,-z,nodelete",
              "-static-libstdc++",
              "-Wl,--gc-sections",
              "-Xlinker",
              "'--version-script=<(module_root_dir)/native/addon/exports.map'",
              "-s"
            ]
          }
        ]
      ]
    },
    {
      "target_name": "latentkit_blake3",
      "type": "static_library",
      "sources": [
        "native/third_party/blake3/blake3.c",
        "native/third_party/blake3/blake3_portable.c"
      ],
      "defines": [
        "BLAKE3_NO_SSE41"
      ],
      "cflags_c": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-std=gnu11"
      ],
      "conditions": [
        [
          "target_arch=='arm64'",
          {
            "sources": [
              "native/third_party/blake3/blake3_neon.c"
            ]
          }
        ],
        [
          "target_arch=='x64'",
          {
            "dependencies": [
              "latentkit_blake3_sse2",
              "latentkit_blake3_avx2",
              "latentkit_blake3_avx512"
            ]
          }
        ]
      ]
    },
    {
      "target_name": "latentkit_blake3_avx2",
      "type": "static_library",
      "sources": [
        "native/third_party/blake3/blake3_avx2.c"
      ],
      "defines": [
        "BLAKE3_NO_SSE41"
      ],
      "cflags_c": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-mavx2",
        "-std=gnu11"
      ],
      "conditions": [
        [
          "target_arch!='x64'",
          {
            "type": "none"
          }
        ]
      ]
    },
    {
      "target_name": "latentkit_blake3_avx512",
      "type": "static_library",
      "sources": [
        "native/third_party/blake3/blake3_avx512.c"
      ],
      "defines": [
        "BLAKE3_NO_SSE41"
      ],
      "cflags_c": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-mavx512f",
        "-mavx512vl",
        "-std=gnu11"
      ],
      "conditions": [
        [
          "target_arch!='x64'",
          {
            "type": "none"
          }
        ]
      ]
    },
    {
      "target_name": "latentkit_blake3_sse2",
      "type": "static_library",
      "sources": [
        "native/third_party/blake3/blake3_sse2.c"
      ],
      "defines": [
        "BLAKE3_NO_SSE41"
      ],
      "cflags_c": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-msse2",
        "-std=gnu11"
      ],
      "conditions": [
        [
          "target_arch!='x64'",
          {
            "type": "none"
          }
        ]
      ]
    },
    {
      "target_name": "latentkit_core",
      "type": "static_library",
      "sources": [
        "native/core/adapters/adapters.cpp",
        "native/core/deflate/block.cpp",
        "native/core/deflate/cost.cpp",
        "native/core/deflate/huffman.cpp",
        "native/core/deflate/match.cpp",
        "native/core/deflate/runs.cpp",
        "native/core/deflate/stream.cpp",
        "native/core/deflate/survey.cpp",
        "native/core/noise/brownian.cpp",
        "native/core/noise/mt19937.cpp",
        "native/core/noise/philox.cpp",
        "native/core/png/decode.cpp",
        "native/core/png/encode.cpp",
        "native/core/png/exif.cpp",
        "native/core/png/filter.cpp",
        "native/core/png/filter_choice.cpp",
        "native/core/png/frames.cpp",
        "native/core/png/levels.cpp",
        "native/core/png/scan.cpp",
        "native/core/png/text.cpp",
        "native/core/resize/area.cpp",
        "native/core/resize/bicubic.cpp",
        "native/core/resize/bilinear.cpp",
        "native/core/resize/bislerp.cpp",
        "native/core/resize/lanczos.cpp",
        "native/core/resize/nearest.cpp",
        "native/core/resize/resize.cpp",
        "native/core/runtime/background.cpp",
        "native/core/runtime/dispatch.cpp",
        "native/core/runtime/parallel.cpp",
        "native/core/runtime/processor.cpp",
        "native/core/runtime/scratch.cpp",
        "native/core/runtime/status.cpp",
        "native/core/sampling/beta.cpp",
        "native/core/sampling/sampling.cpp",
        "native/core/sampling/schedule.cpp",
        "native/core/tensor/composite.cpp",
        "native/core/tensor/elementwise.cpp",
        "native/core/tensor/filters.cpp",
        "native/core/tensor/hash.cpp",
        "native/core/tensor/image.cpp",
        "native/core/tensor/inject.cpp",
        "native/core/tensor/reduce.cpp",
        "native/core/weights/blocks.cpp",
        "native/core/weights/scaled.cpp",
        "native/core/weights/unpack.cpp"
      ],
      "dependencies": [
        "latentkit_blake3",
        "latentkit_deflate",
        "latentkit_libm",
        "latentkit_kernels_baseline"
      ],
      "include_dirs": [
        "native/include",
        "native/core",
        "native",
        "native/third_party/libm",
        "native/third_party/blake3",
        "native/third_party/libdeflate"
      ],
      "defines": [
        "BLAKE3_NO_SSE41"
      ],
      "cflags_cc": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-fvisibility-inlines-hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-O3",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-Wall",
        "-Wextra",
        "-std=gnu++20"
      ],
      "cflags_cc!": [
        "-fno-exceptions",
        "-fno-rtti"
      ],
      "conditions": [
        [
          "target_arch=='x64'",
          {
            "dependencies": [
              "latentkit_kernels_avx2",
              "latentkit_kernels_avx512"
            ]
          }
        ]
      ]
    },
    {
      "target_name": "latentkit_cuda",
      "type": "loadable_module",
      "sources": [
        "native/cuda/image.cpp"
      ],
      "dependencies": [
        "latentkit_cuda_objects"
      ],
      "defines": [
        "LK_CUDA_ARCHITECTURES=\"75,80,86,89,90,100,120\"",
        "LK_CUDA_COMPILER=\"13.0\"",
        "LK_CUDA_IMAGE=\"<(module_root_dir)/build/kernels.fatbin\""
      ],
      "cflags_cc": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-fvisibility-inlines-hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-std=gnu++20"
      ],
      "cflags_cc!": [
        "-fno-exceptions",
        "-fno-rtti"
      ],
      "libraries": [
        "-ldl"
      ],
      "conditions": [
        [
          "OS=='linux'",
          {
            "ldflags": [
              "-Wl,-z,nodelete",
              "-static-libstdc++",
              "-Wl,--gc-sections",
              "-Xlinker",
              "'--version-script=<(module_root_dir)/native/cuda/exports.map'",
              "-s"
            ]
          }
        ]
      ],
      "variables": {
        "nvcc%": "nvcc"
      },
      "actions": [
        {
          "action_name": "kernels",
          "inputs": [
            "native/cuda/kernels/kernels.cu"
          ],
          "outputs": [
            "<(module_root_dir)/build/kernels.fatbin"
          ],
          "action": [
            "<(nvcc)",
            "-fatbin",
            "-gencode",
            "arch=compute_75,code=sm_75",
            "-gencode",
            "arch=compute_80,code=sm_80",
            "-gencode",
            "arch=compute_86,code=sm_86",
            "-gencode",
            "arch=compute_89,code=sm_89",
            "-gencode",
            "arch=compute_90,code=sm_90",
            "-gencode",
            "arch=compute_100,code=sm_100",
            "-gencode",
            "arch=compute_120,code=[compute_120,sm_120]",
            "-Xfatbin",
            "-compress-all",
            "--threads",
            "2",
            "-std=c++17",
            "-fmad=false",
            "-prec-div=true",
            "-prec-sqrt=true",
            "-ftz=false",
            "-I",
            "native",
            "-I",
            "native/cuda",
            "-o",
            "<(module_root_dir)/build/kernels.fatbin",
            "native/cuda/kernels/kernels.cu"
          ]
        }
      ],
      "target_conditions": [
        [
          "OS=='linux'",
          {
            "product_extension": "so",
            "ldflags": [
              "-Wl,--undefined=latentkit_cuda"
            ]
          }
        ]
      ]
    },
    {
      "target_name": "latentkit_cuda_objects",
      "type": "static_library",
      "sources": [
        "native/cuda/device.cpp",
        "native/cuda/driver.cpp",
        "native/cuda/memory.cpp",
        "native/cuda/pool.cpp",
        "native/cuda/staging.cpp",
        "native/cuda/table.cpp",
        "native/cuda/operations/elementwise.cpp",
        "native/cuda/operations/images.cpp",
        "native/cuda/operations/noise.cpp",
        "native/cuda/operations/planes.cpp",
        "native/cuda/operations/reduce.cpp"
      ],
      "include_dirs": [
        "native/cuda",
        "native",
        "native/include"
      ],
      "cflags_cc": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-fvisibility-inlines-hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-O2",
        "-ffp-contract=off",
        "-Wall",
        "-Wextra",
        "-std=gnu++20"
      ],
      "cflags_cc!": [
        "-fno-exceptions",
        "-fno-rtti"
      ]
    },
    {
      "target_name": "latentkit_deflate",
      "type": "static_library",
      "sources": [
        "native/third_party/libdeflate/lib/adler32.c",
        "native/third_party/libdeflate/lib/arm/cpu_features.c",
        "native/third_party/libdeflate/lib/crc32.c",
        "native/third_party/libdeflate/lib/deflate_compress.c",
        "native/third_party/libdeflate/lib/deflate_decompress.c",
        "native/third_party/libdeflate/lib/utils.c",
        "native/third_party/libdeflate/lib/x86/cpu_features.c",
        "native/third_party/libdeflate/lib/zlib_compress.c",
        "native/third_party/libdeflate/lib/zlib_decompress.c"
      ],
      "include_dirs": [
        "native/third_party/libdeflate"
      ],
      "cflags_c": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-std=gnu11"
      ]
    },
    {
      "target_name": "latentkit_kernels_avx2",
      "type": "static_library",
      "sources": [
        "native/core/kernels/noise.cpp",
        "native/core/kernels/elementwise.cpp",
        "native/core/kernels/schedule.cpp",
        "native/core/kernels/reduce.cpp",
        "native/core/kernels/pixels.cpp",
        "native/core/kernels/resize/planes.cpp",
        "native/core/kernels/resize/colours.cpp",
        "native/core/kernels/resize/weigh.cpp",
        "native/core/kernels/unfilter.cpp",
        "native/core/kernels/filter.cpp",
        "native/core/kernels/histogram.cpp",
        "native/core/kernels/symbols.cpp",
        "native/core/kernels/brownian.cpp"
      ],
      "include_dirs": [
        "native/third_party/libm",
        "native"
      ],
      "defines": [
        "LK_ISA=avx2"
      ],
      "cflags_cc": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-fvisibility-inlines-hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-O3",
        "-fno-tree-slp-vectorize",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-mavx2",
        "-mfma",
        "-mbmi2",
        "-fno-exceptions",
        "-fno-rtti",
        "-Wall",
        "-Wextra",
        "-Wno-psabi",
        "-std=gnu++20"
      ],
      "conditions": [
        [
          "target_arch!='x64'",
          {
            "type": "none"
          }
        ]
      ]
    },
    {
      "target_name": "latentkit_kernels_avx512",
      "type": "static_library",
      "sources": [
        "native/core/kernels/noise.cpp",
        "native/core/kernels/elementwise.cpp",
        "native/core/kernels/schedule.cpp",
        "native/core/kernels/reduce.cpp",
        "native/core/kernels/pixels.cpp",
        "native/core/kernels/resize/planes.cpp",
        "native/core/kernels/resize/colours.cpp",
        "native/core/kernels/resize/weigh.cpp",
        "native/core/kernels/unfilter.cpp",
        "native/core/kernels/filter.cpp",
        "native/core/kernels/histogram.cpp",
        "native/core/kernels/symbols.cpp",
        "native/core/kernels/brownian.cpp"
      ],
      "include_dirs": [
        "native/third_party/libm",
        "native"
      ],
      "defines": [
        "LK_ISA=avx512"
      ],
      "cflags_cc": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-fvisibility-inlines-hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-O3",
        "-fno-tree-slp-vectorize",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
        "-mbmi2",
        "-mprefer-vector-width=512",
        "-fno-exceptions",
        "-fno-rtti",
        "-Wall",
        "-Wextra",
        "-Wno-psabi",
        "-std=gnu++20"
      ],
      "conditions": [
        [
          "target_arch!='x64'",
          {
            "type": "none"
          }
        ]
      ]
    },
    {
      "target_name": "latentkit_kernels_baseline",
      "type": "static_library",
      "sources": [
        "native/core/kernels/noise.cpp",
        "native/core/kernels/elementwise.cpp",
        "native/core/kernels/schedule.cpp",
        "native/core/kernels/reduce.cpp",
        "native/core/kernels/pixels.cpp",
        "native/core/kernels/resize/planes.cpp",
        "native/core/kernels/resize/colours.cpp",
        "native/core/kernels/resize/weigh.cpp",
        "native/core/kernels/unfilter.cpp",
        "native/core/kernels/filter.cpp",
        "native/core/kernels/histogram.cpp",
        "native/core/kernels/symbols.cpp",
        "native/core/kernels/brownian.cpp"
      ],
      "include_dirs": [
        "native/third_party/libm",
        "native"
      ],
      "defines": [
        "LK_ISA=baseline"
      ],
      "cflags_cc": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-fvisibility-inlines-hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-O3",
        "-fno-tree-slp-vectorize",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-exceptions",
        "-fno-rtti",
        "-Wall",
        "-Wextra",
        "-Wno-psabi",
        "-std=gnu++20"
      ]
    },
    {
      "target_name": "latentkit_libm",
      "type": "static_library",
      "sources": [
        "native/third_party/libm/exp.c",
        "native/third_party/libm/log.c",
        "native/third_party/libm/pow.c",
        "native/third_party/libm/sin.c",
        "native/third_party/libm/cos.c",
        "native/third_party/libm/tan.c",
        "native/third_party/libm/acos.c",
        "native/third_party/libm/atan.c",
        "native/third_party/libm/log1p.c",
        "native/third_party/libm/expm1.c",
        "native/third_party/libm/scalbn.c",
        "native/third_party/libm/floor.c",
        "native/third_party/libm/__sin.c",
        "native/third_party/libm/__cos.c",
        "native/third_party/libm/__tan.c",
        "native/third_party/libm/__rem_pio2.c",
        "native/third_party/libm/__rem_pio2_large.c",
        "native/third_party/libm/exp_data.c",
        "native/third_party/libm/log_data.c",
        "native/third_party/libm/pow_data.c",
        "native/third_party/libm/__math_divzero.c",
        "native/third_party/libm/__math_invalid.c",
        "native/third_party/libm/__math_oflow.c",
        "native/third_party/libm/__math_uflow.c",
        "native/third_party/libm/__math_xflow.c"
      ],
      "cflags_c": [
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-O2",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-w",
        "-std=gnu11"
      ]
    }
  ]
}
