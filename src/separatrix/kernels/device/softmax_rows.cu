// The softmax loss over dense rows of float32 on the device, each row read once.
//
//   eta_k = b_k + sum_j w_kj (x_j - m_j),   loss += s (log sum_k e^{eta_k} - eta_y),   r_k = s (p_k - [k = y])
//   gradient_k += r_k (x - m),   sums of r_k and of r_k^2 / s,   max |eta|,   max_i sum_j metric_j x_ij^2 (MEASURED = 1), of x - m (2)
//
// A warp takes eight rows at a time, V columns of each to a lane; four lanes hold the scores of a row. A fixed map of rows to warps, and
// sums in a fixed order: the bits do not differ between runs. TURNS times eight rows are added in single precision before sums in
// double precision, in shared memory, take them. Known at compile time: D columns, K classes, MEASURED, TURNS.
typedef unsigned char u8;
#define FULL 0xffffffffu
constexpr int WARPS = 4, THREADS = 32 * WARPS, V = (D + 31) / 32, P = 32 * V, R = 8, SUMS = K * D + K + 3, WIDTH = SUMS + 2;
constexpr int KP = (K + 3) / 4 * 4;

__device__ __forceinline__ float fold(float* v, int lane) {   // sums of eight values over 32 lanes; lane l is left with value l / 4
#pragma unroll
    for (int h = 4, s = 16; h > 0; h /= 2, s /= 2) {
        const bool up = lane & s;
#pragma unroll
        for (int i = 0; i < h; ++i) {
            const float keep = up ? v[i + h] : v[i], send = up ? v[i] : v[i + h];
            v[i] = keep + __shfl_xor_sync(FULL, send, s);
        }
    }
    float t = v[0] + __shfl_xor_sync(FULL, v[0], 2);
    return t + __shfl_xor_sync(FULL, t, 1);
}

extern "C" __global__ void __launch_bounds__(THREADS, 3)
softmax_pass(const float* __restrict__ X, long long stride, const u8* __restrict__ y, const float* __restrict__ weights,
             const float* __restrict__ columns, const float* __restrict__ b, long long n, double* __restrict__ partial) {
    extern __shared__ __align__(16) unsigned char bytes[];
    const int lane = threadIdx.x & 31, own = threadIdx.x >> 5;
    double* sums = reinterpret_cast<double*>(bytes) + own * K * P;
    __shared__ __align__(16) float slopes[WARPS][R][KP];
    for (int i = lane; i < K * P; i += 32) sums[i] = 0;
    float w[K][V], m[V], metric[V], g[K][V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
        const int j = lane + 32 * v;
#pragma unroll
        for (int k = 0; k < K; ++k) { w[k][v] = j < D ? columns[k * D + j] : 0.f; g[k][v] = 0; }
        m[v] = j < D ? columns[K * D + j] : 0.f;
        metric[v] = MEASURED && j < D ? columns[(K + 1) * D + j] : 0.f;
    }
    __shared__ float last[K];
    for (int k = threadIdx.x; k < K; k += THREADS) last[k] = b[k];
    __syncthreads();
    double loss = 0, squares = 0, total = 0, added = 0;   // the last of class `lane`
    float steepest = 0, largest = 0;
    auto flush = [&]() {
#pragma unroll
        for (int k = 0; k < K; ++k)
#pragma unroll
            for (int v = 0; v < V; ++v) { sums[k * P + lane + 32 * v] += double(g[k][v]); g[k][v] = 0; }
    };
    const long long step = (long long)gridDim.x * WARPS * R;
    int turn = 0;
    for (long long first = ((long long)blockIdx.x * WARPS + own) * R; first < n; first += step) {
        float x[R][V], fresh[R];
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const float* row = X + (first + r) * stride + lane;
#pragma unroll
            for (int v = 0; v < V; ++v) x[r][v] = first + r < n && (v < V - 1 || lane + 32 * v < D) ? __ldcs(row + 32 * v) : m[v];
        }
        const int mine = lane / 4;
        const long long at = first + mine;
        const int label = at < n ? y[at] : 0;
        const float s = at >= n ? 0.f : weights ? weights[at] : 1.f;
        float size = 0;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            float q = 0;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                if (MEASURED == 1) q += metric[v] * x[r][v] * x[r][v];
                x[r][v] -= m[v];
                if (MEASURED == 2) q += metric[v] * x[r][v] * x[r][v];
            }
            fresh[r] = q;
        }
        if (MEASURED) size = fold(fresh, lane);
        float eta[K], top = __int_as_float(0xff800000);
#pragma unroll
        for (int k = 0; k < K; ++k) {
#pragma unroll
            for (int r = 0; r < R; ++r) {
                float t = 0;
#pragma unroll
                for (int v = 0; v < V; ++v) t += w[k][v] * x[r][v];
                fresh[r] = t;
            }
            eta[k] = fold(fresh, lane) + last[k];
            top = fmaxf(top, eta[k]);
        }
        float sum = 0, of_label = 0, extreme = 0;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            of_label = k == label ? eta[k] : of_label;
            extreme = fmaxf(extreme, fabsf(eta[k]));
            eta[k] = __expf(eta[k] - top);
            sum += eta[k];
        }
        const float share = 1.f / sum;
        float others = 0, square = 0;
#pragma unroll
        for (int k = 0; k < K; ++k) { eta[k] *= share; others += k == label ? 0.f : eta[k]; }
#pragma unroll
        for (int k = 0; k < K; ++k) { eta[k] = k == label ? -others : eta[k]; square += eta[k] * eta[k]; }   // 1 - p does not cancel
        if ((lane & 3) == 0) {
            if (s > 0) {
                loss += double(s * (top - of_label + __logf(sum))); squares += double(s * square); total += double(s);
                steepest = fmaxf(steepest, extreme); largest = fmaxf(largest, size);
            }
#pragma unroll
            for (int k = 0; k < K; ++k) { const float c = s > 0 ? s * eta[k] : 0.f; slopes[own][mine][k] = c; }
        }
        __syncwarp();
        if (lane < K) {
            float t = 0;
#pragma unroll
            for (int r = 0; r < R; ++r) t += slopes[own][r][lane];
            added += double(t);
        }
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int k = 0; k < K; ++k) {
                const float c = slopes[own][r][k];
#pragma unroll
                for (int v = 0; v < V; ++v) g[k][v] += c * x[r][v];
            }
        __syncwarp();
        if (++turn == TURNS) { flush(); turn = 0; }
    }
    flush();
    double rest[5] = {loss, squares, total, double(steepest), double(largest)};
#pragma unroll
    for (int i = 0; i < 5; ++i)
        for (int t = 16; t > 0; t /= 2) {
            const double other = __shfl_xor_sync(FULL, rest[i], t);
            rest[i] = i < 3 ? rest[i] + other : fmax(rest[i], other);
        }
    __shared__ double ends[WARPS][K + 5];
    if (lane < K) ends[own][lane] = added;
    if (lane == 0)
        for (int i = 0; i < 5; ++i) ends[own][K + i] = rest[i];
    __syncthreads();
    double* out = partial + (long long)blockIdx.x * WIDTH;
    const double* all = reinterpret_cast<double*>(bytes);
    for (int i = threadIdx.x; i < K * D; i += THREADS) {
        double t = 0;
        for (int k = 0; k < WARPS; ++k) t += all[k * K * P + (i / D) * P + i % D];
        out[i] = t;
    }
    for (int i = threadIdx.x; i < K + 5; i += THREADS) {
        double t = ends[0][i];
        for (int k = 1; k < WARPS; ++k) t = i < K + 3 ? t + ends[k][i] : fmax(t, ends[k][i]);
        out[K * D + i] = t;
    }
}

// The sums of the blocks, in a fixed order: 32 columns of sums to a block of threads.
extern "C" __global__ void gather(const double* __restrict__ partial, int blocks, double* __restrict__ out) {
    __shared__ double part[8][32];
    const int j = blockIdx.x * 32 + (threadIdx.x & 31), row = threadIdx.x >> 5;
    double t = 0;
    if (j < WIDTH)
        for (int k = row; k < blocks; k += 8) { const double p = partial[(long long)k * WIDTH + j]; t = j < SUMS ? t + p : fmax(t, p); }
    part[row][threadIdx.x & 31] = t;
    __syncthreads();
    if (row == 0 && j < WIDTH) {
        for (int k = 1; k < 8; ++k) t = j < SUMS ? t + part[k][threadIdx.x & 31] : fmax(t, part[k][threadIdx.x & 31]);
        out[j] = t;
    }
}
