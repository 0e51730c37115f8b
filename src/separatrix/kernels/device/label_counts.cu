// How many of n labels there are of each class, in whole numbers: any order of adding gives the same. Known at compile time: K classes,
// THREADS, each of which counts by itself in shared memory.
typedef unsigned char u8;
typedef unsigned int u32;
extern "C" __global__ void count_labels(const u8* __restrict__ y, long long n, unsigned long long* __restrict__ counts) {
    extern __shared__ u32 own[];
    for (int k = 0; k < K; ++k) own[k * THREADS + threadIdx.x] = 0;
    const long long before = (16 - (reinterpret_cast<unsigned long long>(y) & 15)) & 15, head = before < n ? before : n;
    const uint4* quads = reinterpret_cast<const uint4*>(y + head);
    const long long wide = (n - head) / 16, step = (long long)gridDim.x * THREADS;
    const long long first = (long long)blockIdx.x * THREADS + threadIdx.x;
    for (long long i = first; i < wide; i += step) {
        const uint4 q = quads[i];
        const u32 words[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int w = 0; w < 4; ++w)
#pragma unroll
            for (int b = 0; b < 32; b += 8) ++own[((words[w] >> b) & 255) * THREADS + threadIdx.x];
    }
    for (long long i = first; i < head; i += step) ++own[y[i] * THREADS + threadIdx.x];
    for (long long i = head + 16 * wide + first; i < n; i += step) ++own[y[i] * THREADS + threadIdx.x];
    __syncthreads();
    for (int k = threadIdx.x; k < K; k += THREADS) {
        unsigned long long total = 0;
        for (int t = 0; t < THREADS; ++t) total += own[k * THREADS + (t + k) % THREADS];
        if (total) atomicAdd(counts + k, total);
    }
}
