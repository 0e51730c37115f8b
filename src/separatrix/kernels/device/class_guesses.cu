// Guesses of class means from some rows that are spread over the data, and the spread of the columns: one small pass.
//
//   m_k = p + sum (x - p) / n_k   over the looked-at rows of class k,      within = sum (x - p)^2 - sum_k n_k (m_k - p)^2
//
// p is the first row, so that little cancels. A block of threads has 32 columns, a warp every WARPS-th of the rows that are looked at;
// their sums are added in a fixed order. Known at compile time: D columns, K classes, WARPS.
typedef unsigned char u8;
constexpr int THREADS = 32 * WARPS;

extern "C" __global__ void __launch_bounds__(THREADS)
class_guesses(const float* __restrict__ X, long long stride, const u8* __restrict__ y, long long step, int rows, double* __restrict__ out) {
    extern __shared__ __align__(16) double sums[];   // of a warp and class, 32 columns; squares of a warp; counts of all
    const int lane = threadIdx.x & 31, own = threadIdx.x >> 5, j = blockIdx.x * 32 + lane;
    double* squares = sums + WARPS * K * 32;
    int* counts = reinterpret_cast<int*>(squares + WARPS * 32);
    for (int i = threadIdx.x; i < (WARPS * K + WARPS) * 32; i += THREADS) sums[i] = 0;
    for (int k = threadIdx.x; k < K; k += THREADS) counts[k] = 0;
    __syncthreads();
    const bool there = j < D;
    const double pivot = there ? double(X[j]) : 0.0;
    double square = 0;
    for (int first = own; first < rows; first += 8 * WARPS) {
        double x[8];
        int k[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const long long row = (long long)(first + i * WARPS) * step;
            const bool here = first + i * WARPS < rows;
            k[i] = here ? y[row] : -1;
            x[i] = here && there ? double(X[row * stride + j]) - pivot : 0.0;
        }
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (k[i] >= 0) {
                sums[(own * K + k[i]) * 32 + lane] += x[i];
                square += x[i] * x[i];
                if (lane == 0) atomicAdd(counts + k[i], 1);   // whole numbers: in any order
            }
    }
    squares[own * 32 + lane] = square;
    __syncthreads();
    if (own > 0 || !there) return;
    double within = 0, total = 0;
    for (int w = 0; w < WARPS; ++w) within += squares[w * 32 + lane];
    for (int k = 0; k < K; ++k) {
        double s = 0;
        for (int w = 0; w < WARPS; ++w) s += sums[(w * K + k) * 32 + lane];
        total += s;
        if (counts[k] > 0) within -= s * s / counts[k];
        out[(long long)k * D + j] = counts[k] > 0 ? pivot + s / counts[k] : nan("");
    }
    out[(long long)K * D + j] = pivot + total / rows;
    out[(long long)(K + 1) * D + j] = within > 0 ? within / rows : 0.0;
}
