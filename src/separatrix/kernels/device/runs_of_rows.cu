// Runs of rows of a dense array, copied one after the other: out[i] = rows start_i … start_i + run - 1. A block of threads copies
// a run, in pieces of the type U.
extern "C" __global__ void take_runs(const U* __restrict__ X, const long long* __restrict__ starts, long long row, long long each, U* __restrict__ out) {
    const U* from = X + starts[blockIdx.x] * row;
    U* to = out + blockIdx.x * each;
    for (long long i = threadIdx.x; i < each; i += blockDim.x) to[i] = from[i];
}
