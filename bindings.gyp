{
  "targets": [
    {
      "target_name": "latentkit",
      "type": "loadable_module",
      "sources": [
        "native/addon/addon.cpp",
        "native/addon/args.cpp",
        "native/addon/cuda.cpp",
        "native/addon/cuda_operations.cpp",
        "native/addon/images.cpp",
        "native/addon/lock.cpp",
        "native/addon/noise.cpp",
        "native/addon/png.cpp",
        "native/addon/runtime.cpp",
        "native/addon/sampling.cpp",
        "native/addon/tensors.cpp",
        "native/addon/worker.cpp"
      ],
      "dependencies": [
        "latentkit_core"
      ],
      "include_dirs": [
        "native/include",
        "<!(node -p \"require('node-addon-api').include_dir\")"
      ],
      "defines": [
        "NAPI_VERSION=8",
        "NODE_ADDON_API_CPP_EXCEPTIONS",
        "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
      ],
      "cflags_cc": [
        "-std=gnu++20",
        "-fexceptions",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections"
      ],
      "cflags_cc!": [
        "-fno-exceptions",
        "-fno-rtti"
      ],
      "conditions": [
        [
          "OS=='linux'",
          {
            "ldflags": [
              "-static-libstdc++",
              "-Wl,--gc-sections",
              "-Wl,-z,nodelete",
              "-Wl,--version-script=<(module_root_dir)/native/addon/exports.map"
            ]
          }
        ]
      ]
    },
    {
      "target_name": "latentkit_cuda",
      "type": "loadable_module",
      "product_prefix": "",
      "product_extension": "so",
      "sources": [
        "native/cuda/image.cpp"
      ],
      "dependencies": [
        "latentkit_cuda_host"
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
            "<(INTERMEDIATE_DIR)/kernels.fatbin"
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
            "<(INTERMEDIATE_DIR)/kernels.fatbin",
            "native/cuda/kernels/kernels.cu"
          ]
        }
      ],
      "defines": [
        "LK_CUDA_IMAGE=\"<(INTERMEDIATE_DIR)/kernels.fatbin\"",
        "LK_CUDA_ARCHITECTURES=\"75,80,86,89,90,100,120\"",
        "LK_CUDA_COMPILER=\"13.0\""
      ],
      "cflags_cc": [
        "-std=gnu++20",
        "-fvisibility=hidden"
      ],
      "ldflags": [
        "-static-libstdc++",
        "-Wl,--gc-sections",
        "-Wl,-z,nodelete",
        "-Wl,--version-script=<(module_root_dir)/native/cuda/exports.map"
      ],
      "libraries": [
        "-ldl"
      ]
    },
    {
      "target_name": "latentkit_cuda_host",
      "type": "static_library",
      "sources": [
        "native/cuda/device.cpp",
        "native/cuda/driver.cpp",
        "native/cuda/elementwise.cpp",
        "native/cuda/images.cpp",
        "native/cuda/memory.cpp",
        "native/cuda/noise.cpp",
        "native/cuda/planes.cpp",
        "native/cuda/pool.cpp",
        "native/cuda/reduce.cpp",
        "native/cuda/staging.cpp",
        "native/cuda/table.cpp"
      ],
      "include_dirs": [
        "native/include",
        "native",
        "native/cuda"
      ],
      "cflags_cc": [
        "-std=gnu++20",
        "-O2",
        "-ffp-contract=off",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-fexceptions"
      ],
      "cflags_cc!": [
        "-fno-exceptions"
      ]
    },
    {
      "target_name": "latentkit_core",
      "type": "static_library",
      "sources": [
        "native/core/background.cpp",
        "native/core/beta.cpp",
        "native/core/composite.cpp",
        "native/core/deflate.cpp",
        "native/core/deflate_block.cpp",
        "native/core/deflate_cost.cpp",
        "native/core/deflate_huffman.cpp",
        "native/core/deflate_match.cpp",
        "native/core/deflate_probe.cpp",
        "native/core/deflate_runs.cpp",
        "native/core/dispatch.cpp",
        "native/core/elementwise.cpp",
        "native/core/hash.cpp",
        "native/core/image.cpp",
        "native/core/inject.cpp",
        "native/core/mt19937.cpp",
        "native/core/parallel.cpp",
        "native/core/philox.cpp",
        "native/core/png_decode.cpp",
        "native/core/png_encode.cpp",
        "native/core/png_exif.cpp",
        "native/core/png_filter.cpp",
        "native/core/png_filter_choice.cpp",
        "native/core/png_frames.cpp",
        "native/core/png_levels.cpp",
        "native/core/png_scan.cpp",
        "native/core/png_text.cpp",
        "native/core/reduce.cpp",
        "native/core/resample.cpp",
        "native/core/sampling.cpp",
        "native/core/schedule.cpp",
        "native/core/scratch.cpp",
        "native/core/status.cpp"
      ],
      "dependencies": [
        "latentkit_blake3",
        "latentkit_deflate",
        "latentkit_libm",
        "latentkit_kernels_baseline"
      ],
      "include_dirs": [
        "native/include",
        "native",
        "native/core",
        "native/third_party/libm",
        "native/third_party/blake3",
        "native/third_party/libdeflate"
      ],
      "defines": [
        "BLAKE3_NO_SSE41"
      ],
      "cflags_cc": [
        "-std=gnu++20",
        "-O3",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-fexceptions"
      ],
      "conditions": [
        [
          "target_arch=='x64'",
          {
            "dependencies": [
              "latentkit_blake3_sse2",
              "latentkit_blake3_avx2",
              "latentkit_blake3_avx512",
              "latentkit_kernels_avx2",
              "latentkit_kernels_avx512"
            ]
          }
        ]
      ],
      "cflags_cc!": [
        "-fno-exceptions"
      ]
    },
    {
      "target_name": "latentkit_kernels_baseline",
      "type": "static_library",
      "sources": [
        "native/core/kernels/elementwise.cpp",
        "native/core/kernels/exponential.cpp",
        "native/core/kernels/filter.cpp",
        "native/core/kernels/histogram.cpp",
        "native/core/kernels/noise.cpp",
        "native/core/kernels/pixels.cpp",
        "native/core/kernels/reduce.cpp",
        "native/core/kernels/resize.cpp",
        "native/core/kernels/symbols.cpp",
        "native/core/kernels/unfilter.cpp"
      ],
      "include_dirs": [
        "native/include",
        "native",
        "native/core",
        "native/third_party/libm"
      ],
      "defines": [
        "LK_ISA=baseline"
      ],
      "cflags_cc": [
        "-std=gnu++20",
        "-O3",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-tree-slp-vectorize",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-fno-exceptions",
        "-fno-rtti",
        "-Wno-psabi"
      ]
    },
    {
      "target_name": "latentkit_kernels_avx2",
      "type": "static_library",
      "sources": [
        "native/core/kernels/elementwise.cpp",
        "native/core/kernels/exponential.cpp",
        "native/core/kernels/filter.cpp",
        "native/core/kernels/histogram.cpp",
        "native/core/kernels/noise.cpp",
        "native/core/kernels/pixels.cpp",
        "native/core/kernels/reduce.cpp",
        "native/core/kernels/resize.cpp",
        "native/core/kernels/symbols.cpp",
        "native/core/kernels/unfilter.cpp"
      ],
      "include_dirs": [
        "native/include",
        "native",
        "native/core",
        "native/third_party/libm"
      ],
      "defines": [
        "LK_ISA=avx2"
      ],
      "cflags_cc": [
        "-std=gnu++20",
        "-O3",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-tree-slp-vectorize",
        "-mavx2",
        "-mfma",
        "-mbmi2",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-fno-exceptions",
        "-fno-rtti",
        "-Wno-psabi"
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
        "native/core/kernels/elementwise.cpp",
        "native/core/kernels/exponential.cpp",
        "native/core/kernels/filter.cpp",
        "native/core/kernels/histogram.cpp",
        "native/core/kernels/noise.cpp",
        "native/core/kernels/pixels.cpp",
        "native/core/kernels/reduce.cpp",
        "native/core/kernels/resize.cpp",
        "native/core/kernels/symbols.cpp",
        "native/core/kernels/unfilter.cpp"
      ],
      "include_dirs": [
        "native/include",
        "native",
        "native/core",
        "native/third_party/libm"
      ],
      "defines": [
        "LK_ISA=avx512"
      ],
      "cflags_cc": [
        "-std=gnu++20",
        "-O3",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-tree-slp-vectorize",
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
        "-mbmi2",
        "-mprefer-vector-width=512",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-fno-exceptions",
        "-fno-rtti",
        "-Wno-psabi"
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
      "target_name": "latentkit_libm",
      "type": "static_library",
      "sources": [
        "native/third_party/libm/__cos.c",
        "native/third_party/libm/__math_divzero.c",
        "native/third_party/libm/__math_invalid.c",
        "native/third_party/libm/__math_oflow.c",
        "native/third_party/libm/__math_uflow.c",
        "native/third_party/libm/__math_xflow.c",
        "native/third_party/libm/__rem_pio2.c",
        "native/third_party/libm/__rem_pio2_large.c",
        "native/third_party/libm/__sin.c",
        "native/third_party/libm/__tan.c",
        "native/third_party/libm/acos.c",
        "native/third_party/libm/atan.c",
        "native/third_party/libm/cos.c",
        "native/third_party/libm/exp.c",
        "native/third_party/libm/exp_data.c",
        "native/third_party/libm/expm1.c",
        "native/third_party/libm/floor.c",
        "native/third_party/libm/log.c",
        "native/third_party/libm/log1p.c",
        "native/third_party/libm/log_data.c",
        "native/third_party/libm/pow.c",
        "native/third_party/libm/pow_data.c",
        "native/third_party/libm/scalbn.c",
        "native/third_party/libm/sin.c",
        "native/third_party/libm/tan.c"
      ],
      "include_dirs": [
        "native/third_party/libm"
      ],
      "cflags_c": [
        "-std=gnu11",
        "-O2",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections"
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
        "-std=gnu11",
        "-O3",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections"
      ],
      "conditions": [
        [
          "target_arch=='arm64'",
          {
            "sources": [
              "native/third_party/blake3/blake3_neon.c"
            ]
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
        "-std=gnu11",
        "-O3",
        "-msse2",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections"
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
      "target_name": "latentkit_blake3_avx2",
      "type": "static_library",
      "sources": [
        "native/third_party/blake3/blake3_avx2.c"
      ],
      "defines": [
        "BLAKE3_NO_SSE41"
      ],
      "cflags_c": [
        "-std=gnu11",
        "-O3",
        "-mavx2",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections"
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
        "-std=gnu11",
        "-O3",
        "-mavx512f",
        "-mavx512vl",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections"
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
        "-std=gnu11",
        "-O3",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections"
      ]
    }
  ]
}
