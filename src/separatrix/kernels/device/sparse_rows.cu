// Sums over the stored entries of sparse rows, in double precision and in a fixed order: the bits do not differ between runs.
//
//   dots       out_g = sum over the entries of segment g of x_e v_{index e}         LANES lanes to a segment, by their mean length
//   products   the same for the M columns of V at once                              a lane to a column of V
//   rows       the same for a tile of rows, then a thread to each row:
//              LOSS = 1   eta = o + b + xw,  loss += s log(1 + e^{-+eta}),  r = s (sigma(eta) - y),  sums and maxima as in linear_rows.cu
//              LOSS = 2   r = s h (last + xv),  the product of a Hessian with a vector before the columns are summed
//   collect    sums of the segments that a long column was cut into
//
// Known at compile time: T (stored numbers), LANES, M, LOSS, MEASURED, SQUARED (x^2 in the place of x).
typedef unsigned char u8;
typedef long long i64;
#define FULL 0xffffffffu
constexpr int THREADS = 256, SUMS = 5, MAXIMA = 2, REST = SUMS + MAXIMA, AHEAD = 4;

__device__ __forceinline__ double entry(T x) { return SQUARED ? double(x) * double(x) : double(x); }

// The sum of a segment over the lanes of its team: every lane takes each LANES-th entry, AHEAD of them on their way at a time.
__device__ __forceinline__ void segment(const T* __restrict__ x, const int* __restrict__ index, const double* __restrict__ v,
                                        const double* __restrict__ metric, i64 from, i64 to, int lane, double& sum, double& size) {
    double t[AHEAD] = {}, q = 0;
    i64 e = from + lane;
    for (; e + (AHEAD - 1) * LANES < to; e += AHEAD * LANES) {
        T value[AHEAD]; int at[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) { value[i] = __ldcs(x + e + i * LANES); at[i] = __ldcs(index + e + i * LANES); }
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            t[i] += entry(value[i]) * __ldg(v + at[i]);
            if (MEASURED) q += double(value[i]) * double(value[i]) * __ldg(metric + at[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < AHEAD - 1; ++i)
        if (e + i * LANES < to) {
            const T value = __ldcs(x + e + i * LANES);
            const int at = __ldcs(index + e + i * LANES);
            t[i] += entry(value) * __ldg(v + at);
            if (MEASURED) q += double(value) * double(value) * __ldg(metric + at);
        }
    sum = (t[0] + t[1]) + (t[2] + t[3]);
    size = q;
#pragma unroll
    for (int s = LANES / 2; s > 0; s /= 2) {
        sum += __shfl_xor_sync(FULL, sum, s);
        if (MEASURED) size += __shfl_xor_sync(FULL, size, s);
    }
}

// `order` names the segments by falling length, so that the teams of a warp end together and the longest begin first.
extern "C" __global__ void __launch_bounds__(THREADS) dots(const T* __restrict__ x, const int* __restrict__ index, const i64* __restrict__ cuts,
        const int* __restrict__ order, const double* __restrict__ v, i64 segments, double* __restrict__ out) {
    constexpr int TEAMS = THREADS / LANES;
    const int lane = threadIdx.x % LANES, team = threadIdx.x / LANES;
    for (i64 first = (i64)blockIdx.x * TEAMS; first < segments; first += (i64)gridDim.x * TEAMS) {
        const bool there = first + team < segments;
        const i64 g = there ? (order ? (i64)order[first + team] : first + team) : 0;
        double sum, size;
        segment(x, index, v, nullptr, there ? cuts[g] : 0, there ? cuts[g + 1] : 0, lane, sum, size);
        if (there && lane == 0) out[g] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) products(const T* __restrict__ x, const int* __restrict__ index, const i64* __restrict__ cuts,
        const int* __restrict__ order, const double* __restrict__ V, int columns, i64 segments, double* __restrict__ out) {
    constexpr int TEAMS = THREADS / M;
    const int lane = threadIdx.x % M, team = threadIdx.x / M;
    for (i64 at = (i64)blockIdx.x * TEAMS + team; at < segments; at += (i64)gridDim.x * TEAMS) {
        const i64 g = order ? (i64)order[at] : at, to = cuts[g + 1];
        for (int k = lane; k < columns; k += M) {
            double t[AHEAD] = {};
            i64 e = cuts[g];
            for (; e + AHEAD <= to; e += AHEAD) {
#pragma unroll
                for (int i = 0; i < AHEAD; ++i) t[i] += entry(x[e + i]) * __ldg(V + (i64)index[e + i] * columns + k);
            }
            for (; e < to; ++e) t[0] += entry(x[e]) * __ldg(V + (i64)index[e] * columns + k);
            out[g * columns + k] = (t[0] + t[1]) + (t[2] + t[3]);
        }
    }
}

// (columns of X) x (columns of V): the sums of segments first[j] to first[j + 1], a warp to a sum.
extern "C" __global__ void __launch_bounds__(THREADS) collect(const double* __restrict__ parts, const i64* __restrict__ first, int columns, i64 total,
        double* __restrict__ out) {
    const int lane = threadIdx.x & 31;
    const i64 at = ((i64)blockIdx.x * THREADS + threadIdx.x) >> 5;
    if (at >= total) return;
    const i64 j = at / columns, k = at % columns, to = first[j + 1];
    double t = 0;
    for (i64 c = first[j] + lane; c < to; c += 32) t += parts[c * columns + k];
#pragma unroll
    for (int s = 16; s > 0; s /= 2) t += __shfl_xor_sync(FULL, t, s);
    if (lane == 0) out[at] = t;
}

#if LOSS
extern "C" __global__ void __launch_bounds__(THREADS) rows(const T* __restrict__ x, const int* __restrict__ index, const i64* __restrict__ starts,
        const u8* __restrict__ y, const double* __restrict__ weights, const double* __restrict__ offset, const double* __restrict__ w,
        const double* __restrict__ metric, double b, i64 n, double* __restrict__ slopes, double* __restrict__ bends, double* __restrict__ partial) {
    constexpr int TEAMS = THREADS / LANES;
    __shared__ double scores[THREADS], sizes[MEASURED ? THREADS : 1], rest[THREADS / 32][REST];
    const int lane = threadIdx.x % LANES, team = threadIdx.x / LANES;
    double own[REST] = {};
    for (i64 tile = (i64)blockIdx.x * THREADS; tile < n; tile += (i64)gridDim.x * THREADS) {
        for (int r = team; r < THREADS; r += TEAMS) {
            const i64 i = tile + r;
            double sum, size;
            segment(x, index, w, metric, i < n ? starts[i] : 0, i < n ? starts[i + 1] : 0, lane, sum, size);
            if (lane == 0) { scores[r] = sum; if (MEASURED) sizes[r] = size; }
        }
        __syncthreads();
        const i64 i = tile + threadIdx.x;
        if (i < n) {
            const double s = weights ? weights[i] : 1.0, eta = scores[threadIdx.x] + b + (offset ? offset[i] : 0.0);
            if (LOSS == 1) {
                const double z = y[i] ? -eta : eta, e = exp(-fabs(z)), q = 1.0 / (1.0 + e), p = z > 0 ? q : e * q;
                slopes[i] = y[i] ? -s * p : s * p;
                own[0] += s * (fmax(z, 0.0) + log1p(e)); own[1] += slopes[i]; own[2] += s * p * p; own[3] += s; own[4] += s * e * q * q;
                if (bends) bends[i] = e * q * q;
                if (s > 0) {
                    own[5] = fmax(own[5], fabs(eta));
                    if (MEASURED) own[6] = fmax(own[6], sizes[threadIdx.x]);
                }
            } else {
                slopes[i] = s * bends[i] * eta;
                own[1] += slopes[i];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < REST; ++i) {
        for (int s = 16; s > 0; s /= 2) {
            const double other = __shfl_xor_sync(FULL, own[i], s);
            own[i] = i < SUMS ? own[i] + other : fmax(own[i], other);
        }
        if ((threadIdx.x & 31) == 0) rest[threadIdx.x >> 5][i] = own[i];
    }
    __syncthreads();
    if (threadIdx.x < REST) {
        double t = rest[0][threadIdx.x];
        for (int k = 1; k < THREADS / 32; ++k) t = threadIdx.x < SUMS ? t + rest[k][threadIdx.x] : fmax(t, rest[k][threadIdx.x]);
        partial[blockIdx.x * REST + threadIdx.x] = t;
    }
}

// The sums of the blocks, in a fixed order.
extern "C" __global__ void gather(const double* __restrict__ partial, int blocks, double* __restrict__ out) {
    const int lane = threadIdx.x & 31, i = threadIdx.x >> 5;
    if (i >= REST) return;
    double t = 0;
    for (int k = lane; k < blocks; k += 32) t = i < SUMS ? t + partial[k * REST + i] : fmax(t, partial[k * REST + i]);
#pragma unroll
    for (int s = 16; s > 0; s /= 2) {
        const double other = __shfl_xor_sync(FULL, t, s);
        t = i < SUMS ? t + other : fmax(t, other);
    }
    if (lane == 0) out[i] = t;
}
#endif
