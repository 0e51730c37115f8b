// The softmax loss over dense rows of float32 without weights on the device, each row read once, by the tensor cores of half precision.
//
//   z = (x - m) u,   eta = b + V z,   loss += log sum_k e^{eta_k} - eta_y,   r_k = p_k - [k = y]
//   gradient_k += r_k z,   sums of r_k and of r_k^2,   max |eta|,   max_i sum_j metric_j x_ij^2 (MEASURED = 1), of x - m (2)
//
// A number is taken as two of half precision, h + l, to 22 bits, and a product as h h' + h l' + l h'. u are powers of two, V and r are
// scaled by powers of two so that their low halves are seldom out of range. Sums of sixteen rows are made by the tensor cores, which
// truncate; of 4096 rows of a warp in single precision, rounded to nearest, and the rest in double precision. A warp takes sixteen rows:
//
//   scores      mma m16n8k16:   A = z of sixteen rows and columns,              B = V of these columns and eight classes
//   gradient    mma m16n8k16:   A = z', the same registers by movmatrix,       B = r of sixteen rows and eight classes
//
// Lane (g, t) holds the columns 4t … 4t + 3 of each sixteen and the rows g and g + 8. A fixed map of rows to warps and sums in a fixed
// order: the bits do not differ between runs. Known at compile time: D columns, K classes, MEASURED, QUADS (rows on boundaries of sixteen
// bytes), MINB. What is shared by the kernels of halves precedes this.
constexpr int S = (D + 15) / 16, KG = (K + 7) / 8, CHAIN = 256;
constexpr int TILES = S * KG * 128, SUMS = TILES + 8 * KG + 3, WIDTH = SUMS + 2;
constexpr float UP = 32768.f;   // of r

__device__ __forceinline__ float quad_sum(float v) {
    v += __shfl_xor_sync(FULL, v, 1);
    return v + __shfl_xor_sync(FULL, v, 2);
}
__device__ __forceinline__ float quad_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(FULL, v, 1));
    return fmaxf(v, __shfl_xor_sync(FULL, v, 2));
}
__device__ __forceinline__ float measure(float4 k, float4 v) { return k.x * v.x * v.x + k.y * v.y * v.y + k.z * v.z * v.z + k.w * v.w * v.w; }

// columns: (K, D) V, then m u, u and the metric, of x or of z.
extern "C" __global__ void __launch_bounds__(THREADS, MINB)
softmax_pass(const float* __restrict__ X, const u8* __restrict__ y, const float* __restrict__ columns, const float* __restrict__ b, float down,
             long long n, double* __restrict__ partial) {
    __shared__ uint4 coefficients[S * KG * 32];   // of a lane: high and low halves of V
    __shared__ float4 about[3][4 * S];
    __shared__ float last[8 * KG];
    const int lane = threadIdx.x & 31, own = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    for (int i = threadIdx.x; i < S * KG * 32; i += THREADS) {
        const int at = i & 31, k = 8 * ((i >> 5) % KG) + (at >> 2), j = 16 * ((i >> 5) / KG) + 4 * (at & 3);
        float v[4];
        for (int e = 0; e < 4; ++e) v[e] = k < K && j + e < D ? columns[k * D + j + e] : 0.f;
        const u32 h0 = halves(v[0], v[1]), h1 = halves(v[2], v[3]);
        coefficients[i] = make_uint4(h0, h1, rest(v[0], v[1], h0), rest(v[2], v[3], h1));
    }
    for (int i = threadIdx.x; i < 3 * 16 * S; i += THREADS) {
        const int row = i / (16 * S), j = i % (16 * S);
        reinterpret_cast<float*>(about)[i] = j < D ? columns[(K + row) * D + j] : 0.f;
    }
    for (int k = threadIdx.x; k < 8 * KG; k += THREADS) last[k] = k < K ? b[k] : __int_as_float(0xff800000);
    __syncthreads();
    double* out = partial + ((long long)blockIdx.x * WARPS + own) * WIDTH;
    float sums[S][KG][4], slopes[2 * KG];
    double totals[2 * KG], loss = 0, squares = 0, counted = 0;
    float steepest = 0, largest = 0;
#pragma unroll
    for (int i = 0; i < S * KG * 4; ++i) (&sums[0][0][0])[i] = 0;
#pragma unroll
    for (int k = 0; k < 2 * KG; ++k) { slopes[k] = 0; totals[k] = 0; }
    bool begun = false;
    auto flush = [&]() {
#pragma unroll
        for (int i = 0; i < S * KG * 4; ++i) {
            double* at = out + i * 32 + lane;
            const double added = double((&sums[0][0][0])[i]);
            *at = begun ? *at + added : added;
            (&sums[0][0][0])[i] = 0;
        }
#pragma unroll
        for (int k = 0; k < 2 * KG; ++k) { totals[k] += double(slopes[k]); slopes[k] = 0; }
        begun = true;
    };
    float4 x[S][2];
    int label[2];
    auto load = [&](long long first, int s) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const long long at = first + g + 8 * r;
            x[s][r] = at < n ? quad_at<D>(X + at * D + 16 * s + 4 * t, s < S - 1 ? 0 : 16 * s + 4 * t) : make_float4(0, 0, 0, 0);
        }
    };
    const long long step = (long long)gridDim.x * WARPS * 16;
    long long first = ((long long)blockIdx.x * WARPS + own) * 16;
#pragma unroll
    for (int s = 0; s < S; ++s) load(first, s);
#pragma unroll
    for (int r = 0; r < 2; ++r) label[r] = first + g + 8 * r < n ? y[first + g + 8 * r] : 0;
    int chain = 0;
    for (; first < n; first += step) {
        u32 high[S][4], low[S][4];   // rows g and g + 8 of two columns, then of two more
        float eta[KG][4], size[2] = {0, 0};
        const long long ahead = first + step;
#pragma unroll
        for (int s = 0; s < S; ++s) {
            const float4 m = about[0][4 * s + t], u = about[1][4 * s + t];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const float4 v = x[s][r];
                const float4 z = make_float4(fmaf(v.x, u.x, -m.x), fmaf(v.y, u.y, -m.y), fmaf(v.z, u.z, -m.z), fmaf(v.w, u.w, -m.w));
                if (MEASURED) size[r] += measure(about[2][4 * s + t], MEASURED == 1 ? v : z);
                high[s][r] = halves(z.x, z.y); high[s][r + 2] = halves(z.z, z.w);
                low[s][r] = rest(z.x, z.y, high[s][r]); low[s][r + 2] = rest(z.z, z.w, high[s][r + 2]);
            }
            load(ahead, s);
#pragma unroll
            for (int q = 0; q < KG; ++q) {
                const uint4 w = coefficients[(s * KG + q) * 32 + lane];
                if (s == 0) multiply_first(eta[q], low[s][0], low[s][1], low[s][2], low[s][3], w.x, w.y);
                else multiply(eta[q], low[s][0], low[s][1], low[s][2], low[s][3], w.x, w.y);
                multiply(eta[q], high[s][0], high[s][1], high[s][2], high[s][3], w.z, w.w);
                multiply(eta[q], high[s][0], high[s][1], high[s][2], high[s][3], w.x, w.y);
            }
        }
        u32 slope_high[KG][2], slope_low[KG][2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const bool counts = first + g + 8 * r < n;
            float top = __int_as_float(0xff800000), extreme = 0, of_label = 0, sum = 0, others = 0, square = 0;
#pragma unroll
            for (int q = 0; q < KG; ++q)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int k = 8 * q + 2 * t + e;
                    const float score = eta[q][2 * r + e] * down + last[k];
                    eta[q][2 * r + e] = score;
                    top = fmaxf(top, score);
                    if (k < K) extreme = fmaxf(extreme, fabsf(score));
                    of_label = k == label[r] ? score : of_label;
                }
            top = quad_max(top);
            of_label = quad_sum(of_label);
#pragma unroll
            for (int q = 0; q < KG; ++q)
#pragma unroll
                for (int e = 0; e < 2; ++e) { float& v = eta[q][2 * r + e]; v = __expf(v - top); sum += v; }
            sum = quad_sum(sum);
            const float share = 1.f / sum;
#pragma unroll
            for (int q = 0; q < KG; ++q)
#pragma unroll
                for (int e = 0; e < 2; ++e) { float& v = eta[q][2 * r + e]; v *= share; others += 8 * q + 2 * t + e == label[r] ? 0.f : v; }
            others = quad_sum(others);
#pragma unroll
            for (int q = 0; q < KG; ++q) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& v = eta[q][2 * r + e];
                    v = !counts ? 0.f : 8 * q + 2 * t + e == label[r] ? -others : v;   // 1 - p does not cancel
                    square += v * v;
                    slopes[2 * q + e] += v;
                }
                const float a = UP * eta[q][2 * r], c = UP * eta[q][2 * r + 1];
                const u32 h = halves(a, c);
                slope_high[q][r] = turned(h);
                slope_low[q][r] = turned(rest(a, c, h));
            }
            if (counts) {
                squares += double(square);
                steepest = fmaxf(steepest, extreme);
                if (t == 0) { loss += double(top - of_label + __logf(sum)); counted += 1; }
            }
            if (MEASURED) { const float all = quad_sum(size[r]); if (counts) largest = fmaxf(largest, all); }
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) label[r] = ahead + g + 8 * r < n ? y[ahead + g + 8 * r] : 0;
#pragma unroll
        for (int s = 0; s < S; ++s) {
            u32 h[4], l[4];   // the columns of the first eight rows, then of the others
#pragma unroll
            for (int i = 0; i < 4; ++i) { const int from = 2 * (i & 1) + (i >> 1); h[i] = turned(high[s][from]); l[i] = turned(low[s][from]); }
#pragma unroll
            for (int q = 0; q < KG; ++q) {
                float c[4];
                multiply_first(c, l[0], l[1], l[2], l[3], slope_high[q][0], slope_high[q][1]);
                multiply(c, h[0], h[1], h[2], h[3], slope_low[q][0], slope_low[q][1]);
                multiply(c, h[0], h[1], h[2], h[3], slope_high[q][0], slope_high[q][1]);
#pragma unroll
                for (int i = 0; i < 4; ++i) sums[s][q][i] += c[i];
            }
        }
        if (++chain == CHAIN) { flush(); chain = 0; }
    }
    flush();
    double ends[5] = {loss, squares, counted, double(steepest), double(largest)};
#pragma unroll
    for (int i = 0; i < 5; ++i)
        for (int s = 16; s > 0; s /= 2) {
            const double other = __shfl_xor_sync(FULL, ends[i], s);
            ends[i] = i < 3 ? ends[i] + other : fmax(ends[i], other);
        }
    if (lane == 0)
        for (int i = 0; i < 5; ++i) out[TILES + 8 * KG + i] = ends[i];
#pragma unroll
    for (int k = 0; k < 2 * KG; ++k) {
        double v = totals[k];
        for (int s = 16; s > 2; s /= 2) v += __shfl_xor_sync(FULL, v, s);
        if (g == 0) out[TILES + 8 * (k / 2) + 2 * t + k % 2] = v;
    }
}

// The sums of the warps, in a fixed order: 32 columns of sums to a block of threads.
extern "C" __global__ void gather(const double* __restrict__ partial, int warps, double* __restrict__ out) {
    __shared__ double part[8][32];
    const int j = blockIdx.x * 32 + (threadIdx.x & 31), row = threadIdx.x >> 5;
    double t = 0;
    if (j < WIDTH)
        for (int k = row; k < warps; k += 8) { const double p = partial[(long long)k * WIDTH + j]; t = j < SUMS ? t + p : fmax(t, p); }
    part[row][threadIdx.x & 31] = t;
    __syncthreads();
    if (row == 0 && j < WIDTH) {
        for (int k = 1; k < 8; ++k) t = j < SUMS ? t + part[k][threadIdx.x & 31] : fmax(t, part[k][threadIdx.x & 31]);
        out[j] = t;
    }
}
