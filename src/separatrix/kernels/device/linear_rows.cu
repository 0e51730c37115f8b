// A loss of two classes over dense rows on the device, each row read once.
//
//   eta = o + b + sum_j w_j (x_j - m_j),   t = -eta or eta,   loss += s l(t),   r = s l'(t) or -s l'(t)
//   LOSS 0   log(1 + e^t)
//        1   max(0, 1 + t)^2
//        2   max(0, 1 + t) with a parabola of the width h in place of its kink
//   gradient += r (x - m),   sums of r and of r^2 / s,   max |eta|,   max_i sum_j metric_j x_ij^2 (MEASURED = 1), of x - m (2)
//
// Known at compile time: LOSS, T (stored numbers), F (arithmetic), D columns, and how the work is cut (see cuda.py). A fixed map of
// rows to warps and sums in a fixed order: the bits do not differ between runs. Eight rows at most are added in F before a sum
// in double precision takes them.
typedef unsigned char u8;
#define FULL 0xffffffffu
constexpr int SUMS = 5, MAXIMA = 2, REST = SUMS + MAXIMA;

__device__ __forceinline__ float  exp_(float t)  { return __expf(t); }
__device__ __forceinline__ double exp_(double t) { return exp(t); }
__device__ __forceinline__ float  log1p_(float t)  { return log1pf(t); }
__device__ __forceinline__ double log1p_(double t) { return log1p(t); }
__device__ __forceinline__ float  abs_(float t)  { return fabsf(t); }
__device__ __forceinline__ double abs_(double t) { return fabs(t); }
__device__ __forceinline__ float  max_(float a, float b)  { return fmaxf(a, b); }
__device__ __forceinline__ double max_(double a, double b) { return fmax(a, b); }

struct Row { F loss, slope, square, bend; };
__device__ __forceinline__ Row of_score(F score, u8 label, F s, F h) {
    const F z = label ? -score : score;
    if (LOSS == 1) {
        const F over = max_(F(1) + z, F(0)), slope = F(2) * over;
        return {s * over * over, label ? -s * slope : s * slope, s * slope * slope, z > F(-1) ? F(2) : F(0)};
    }
    if (LOSS == 2) {
        const F over = max_(F(1) + z, F(0));
        const bool round = over < h;
        const F slope = round ? over / h : F(1), loss = round ? F(0.5) * over * slope : over - F(0.5) * h;
        return {s * loss, label ? -s * slope : s * slope, s * slope * slope, z >= F(-1) && F(1) + z <= h ? F(1) / h : F(0)};
    }
    const F e = exp_(-abs_(z)), q = F(1) / (F(1) + e), p = z > 0 ? q : e * q;
    return {s * (max_(z, F(0)) + log1p_(e)), label ? -s * p : s * p, s * p * p, e * q * q};
}

struct Totals {
    double loss = 0, slopes = 0, squares = 0, total = 0, bend = 0;
    F steepest = 0, largest = 0;
    __device__ __forceinline__ void add(const Row& row, F s, F score, F size) {
        loss += double(row.loss); slopes += double(row.slope); squares += double(row.square);
        total += double(s); bend += double(s * row.bend);
        reach(s, score, size);
    }
    __device__ __forceinline__ void reach(F s, F score, F size) {
        if (s > 0) { steepest = max_(steepest, abs_(score)); largest = max_(largest, size); }
    }
    __device__ __forceinline__ void write(double* out, int threads) {
        __shared__ double rest[32][REST];
        double own[REST] = {loss, slopes, squares, total, bend, double(steepest), double(largest)};
#pragma unroll
        for (int i = 0; i < REST; ++i)
            for (int s = 16; s > 0; s /= 2) {
                const double other = __shfl_xor_sync(FULL, own[i], s);
                own[i] = i < SUMS ? own[i] + other : fmax(own[i], other);
            }
        if ((threadIdx.x & 31) == 0)
            for (int i = 0; i < REST; ++i) rest[threadIdx.x >> 5][i] = own[i];
        __syncthreads();
        if (threadIdx.x < REST) {
            double t = rest[0][threadIdx.x];
            for (int k = 1; k < threads / 32; ++k) t = threadIdx.x < SUMS ? t + rest[k][threadIdx.x] : fmax(t, rest[k][threadIdx.x]);
            out[threadIdx.x] = t;
        }
    }
};

#define ARGUMENTS const T* __restrict__ X, long long stride, const u8* __restrict__ y, const F* __restrict__ weights, \
    const F* __restrict__ offset, const F* __restrict__ w, const F* __restrict__ m, const F* __restrict__ metric, F b, F h, long long n, \
    double* __restrict__ partial, F* __restrict__ bends

template <int N, int S> struct Fold {   // sums of N values over 32 lanes; lane l is left with value l / (32 / N)
    static __device__ __forceinline__ F run(F* v, int lane) {
        constexpr int H = N / 2;
        const bool up = lane & S;
#pragma unroll
        for (int i = 0; i < H; ++i) {
            const F keep = up ? v[i + H] : v[i], send = up ? v[i] : v[i + H];
            v[i] = keep + __shfl_xor_sync(FULL, send, S);
        }
        return Fold<H, S / 2>::run(v, lane);
    }
};
template <int S> struct Fold<1, S> {
    static __device__ __forceinline__ F run(F* v, int) {
        F t = v[0];
#pragma unroll
        for (int s = S; s > 0; s /= 2) t += __shfl_xor_sync(FULL, t, s);
        return t;
    }
};
constexpr int THREADS = 256;
#if FEW
// Few columns: a lane takes EACH rows of a tile. Rows that come next are copied into a ring in shared memory by each warp, or, where they
// are short and lie on boundaries of sixteen bytes (FEW = 2), loaded into registers.
constexpr int WARPS = THREADS / 32, PITCH = D | 1, TILE = 32 * PITCH, ROWS = 32 * EACH;
constexpr int FOLDED = D <= 2 ? 2 : D <= 4 ? 4 : D <= 8 ? 8 : D <= 16 ? 16 : 32, TIMES = (D + FOLDED - 1) / FOLDED;
#if FEW == 2
constexpr int QUADS = D / 4;
struct Ahead {
    float4 x[EACH][QUADS];
    u8 label[EACH];
    __device__ __forceinline__ void load(const T* __restrict__ X, const u8* __restrict__ y, long long n, long long tile) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const long long at = tile * ROWS + 32 * e + (threadIdx.x & 31);
            const float4* from = reinterpret_cast<const float4*>(X) + at * QUADS;
#pragma unroll
            for (int q = 0; q < QUADS; ++q) x[e][q] = at < n ? __ldg(from + q) : make_float4(0, 0, 0, 0);
            label[e] = at < n ? __ldg(y + at) : 0;
        }
    }
};
#else
__device__ __forceinline__ void copy_async(T* to, const T* from) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (sizeof(T) == 4) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from));
    else asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from));
}
#endif
extern "C" __global__ void __launch_bounds__(THREADS, MINB) linear_pass(ARGUMENTS) {
    const int lane = threadIdx.x & 31, own = threadIdx.x >> 5;
    const long long warp = blockIdx.x * WARPS + own, warps = (long long)gridDim.x * WARPS;
#if FEW == 2
    F w_[D], m_[D], k_[D];
#pragma unroll
    for (int j = 0; j < D; ++j) { w_[j] = w[j]; m_[j] = m[j]; k_[j] = MEASURED ? metric[j] : F(0); }
    Ahead next;
    next.load(X, y, n, warp);
#else
    extern __shared__ __align__(16) unsigned char bytes[];
    __shared__ F coefficients[3 * D];
    T* ring = reinterpret_cast<T*>(bytes) + own * STAGES * TILE;
    for (int j = threadIdx.x; j < D; j += THREADS) { coefficients[3 * j] = w[j]; coefficients[3 * j + 1] = m[j]; coefficients[3 * j + 2] = MEASURED ? metric[j] : F(0); }
    __syncthreads();
    auto fetch = [&](long long tile, int stage) {
        const long long base = tile * 32;
        if (base < n) {
            const T* from = X + base * D + lane;
            T* to = ring + stage * TILE;
            const long long left = (n - base) * D;
            if (left >= 32 * D) {
#pragma unroll
                for (int i = 0; i < D; ++i) { const int k = 32 * i + lane; copy_async(to + (PITCH == D ? k : k + k / D), from + 32 * i); }
            } else {
                for (int i = 0; i < D; ++i) { const int k = 32 * i + lane; if (k < left) copy_async(to + (PITCH == D ? k : k + k / D), from + 32 * i); }
            }
        }
        asm volatile("cp.async.commit_group;");
    };
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) fetch(warp + i * warps, i);
    int stage = 0;
#endif
    F g[TIMES * FOLDED];
    double acc[TIMES];
#pragma unroll
    for (int j = 0; j < TIMES * FOLDED; ++j) g[j] = 0;
#pragma unroll
    for (int t = 0; t < TIMES; ++t) acc[t] = 0;
    Totals totals;
    F losses = 0, slopes = 0, squares = 0, heavy = 0, bend = 0;
    int turn = 0;
    auto flush = [&]() {
        totals.loss += double(losses); totals.slopes += double(slopes); totals.squares += double(squares); totals.total += double(heavy);
        totals.bend += double(bend);
        losses = slopes = squares = heavy = bend = 0;
#pragma unroll
        for (int t = 0; t < TIMES; ++t) {
            acc[t] += double(Fold<FOLDED, 16>::run(g + t * FOLDED, lane));
#pragma unroll
            for (int j = 0; j < FOLDED; ++j) g[t * FOLDED + j] = 0;
        }
    };
    for (long long tile = warp; tile * ROWS < n; tile += warps) {
#if FEW == 2
        const Ahead now = next;
        next.load(X, y, n, tile + warps);
#endif
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const long long at = tile * ROWS + 32 * e + lane;
            const F s = at >= n ? F(0) : weights ? F(weights[at]) : F(1);
            F score = b + (at < n && offset ? F(offset[at]) : F(0)), x[D], size = 0;
#if FEW == 2
            const u8 label = now.label[e];
#pragma unroll
            for (int j = 0; j < D; ++j) {
                const float4 v = now.x[e][j / 4];
                const F raw = j % 4 == 0 ? v.x : j % 4 == 1 ? v.y : j % 4 == 2 ? v.z : v.w;
                x[j] = raw - m_[j];
                score += w_[j] * x[j];
                if (MEASURED) { const F k = MEASURED == 1 ? raw : x[j]; size += k_[j] * k * k; }
            }
#else
            const u8 label = at < n ? y[at] : 0;
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
            __syncwarp();
            const T* row = ring + stage * TILE + lane * PITCH;
#pragma unroll
            for (int j = 0; j < D; ++j) {
                const F raw = F(row[j]);
                x[j] = raw - coefficients[3 * j + 1];
                score += coefficients[3 * j] * x[j];
                if (MEASURED) { const F k = MEASURED == 1 ? raw : x[j]; size += coefficients[3 * j + 2] * k * k; }
            }
            __syncwarp();
            fetch(tile + (STAGES - 1) * warps, stage == 0 ? STAGES - 1 : stage - 1);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
#endif
            if (at < n) {
                const Row one = of_score(score, label, s, h);
                losses += one.loss; slopes += one.slope; squares += one.square; heavy += s; bend += s * one.bend;
                totals.reach(s, score, size);
                if (bends) bends[at] = one.bend;
#pragma unroll
                for (int j = 0; j < D; ++j) g[j] += one.slope * x[j];
            }
        }
        if (++turn % (8 / EACH) == 0) flush();
    }
    flush();
#if FEW == 1
    asm volatile("cp.async.wait_all;");
#endif
    __shared__ double sums[WARPS][TIMES * FOLDED];
#pragma unroll
    for (int t = 0; t < TIMES; ++t) if (lane % (32 / FOLDED) == 0) sums[own][t * FOLDED + lane / (32 / FOLDED)] = acc[t];
    __syncthreads();
    double* out = partial + (long long)blockIdx.x * (D + REST);
    if (threadIdx.x < D) {
        double t = sums[0][threadIdx.x];
        for (int k = 1; k < WARPS; ++k) t += sums[k][threadIdx.x];
        out[threadIdx.x] = t;
    }
    totals.write(out + D, THREADS);
}
#else
// More columns: W warps share a row, V columns to a lane; R rows at a time.
// Numbers of single precision stay so in the registers until they are used.
constexpr int TEAMS = THREADS / (32 * W), PADDED = V * 32 * W;
constexpr bool WIDENED = sizeof(T) < sizeof(F);
extern "C" __global__ void __launch_bounds__(THREADS, MINB) linear_pass(ARGUMENTS) {
    const int lane = threadIdx.x & 31, own = threadIdx.x >> 5, team = own / W, in = threadIdx.x % (32 * W);
    F w_[V], m_[V], k_[V];
    double acc[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
        const int j = in + 32 * W * v;
        w_[v] = j < D ? w[j] : F(0); m_[v] = j < D ? m[j] : F(0); k_[v] = MEASURED && j < D ? metric[j] : F(0); acc[v] = 0;
    }
    Totals totals;
    __shared__ F between[W > 1 ? 2 : 1][TEAMS][R][W], sizes[W > 1 && MEASURED ? 2 : 1][TEAMS][R][W];
    const long long step = (long long)gridDim.x * TEAMS * R;
    int turn = 0;
    for (long long start = (long long)blockIdx.x * TEAMS * R; start < n; start += step, turn ^= 1) {
        const long long first = start + team * R;
        const bool whole = start + TEAMS * R <= n;
        T x[R][V];
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const T* row = X + (first + r) * stride + in;
#pragma unroll
            for (int v = 0; v < V; ++v) x[r][v] = (whole || first + r < n) && (v < V - 1 || in + 32 * W * v < D) ? __ldcs(row + 32 * W * v) : T(m_[v]);
        }
        const int mine = lane / (32 / R);
        const long long at = first + mine;
        const bool counts = at < n;
        const u8 label = counts ? y[at] : 0;
        const F s = !counts ? F(0) : weights ? F(weights[at]) : F(1), o = counts && offset ? F(offset[at]) : F(0);
        F eta[R], squared[R];
#pragma unroll
        for (int r = 0; r < R; ++r) {
            F t = 0, q = 0;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const F raw = F(x[r][v]), z = raw - m_[v];
                if (MEASURED) { const F k = MEASURED == 1 ? raw : z; q += k_[v] * k * k; }
                if (!WIDENED) x[r][v] = T(z);
                t += w_[v] * z;
            }
            eta[r] = t;
            squared[r] = q;
        }
        F score = Fold<R, 16>::run(eta, lane), size = MEASURED ? Fold<R, 16>::run(squared, lane) : F(0);
        if (W > 1) {
            if (lane % (32 / R) == 0) {
                between[turn][team][mine][own % W] = score;
                if (MEASURED) sizes[turn][team][mine][own % W] = size;
            }
            __syncthreads();
            score = size = 0;
#pragma unroll
            for (int k = 0; k < W; ++k) {
                score += between[turn][team][mine][k];
                if (MEASURED) size += sizes[turn][team][mine][k];
            }
        }
        score += b + o;
        const Row row = of_score(score, label, s, h);
        if (own % W == 0 && lane % (32 / R) == 0 && counts) {
            totals.add(row, s, score, size);
            if (bends) bends[at] = row.bend;
        }
        F g[V];
#pragma unroll
        for (int v = 0; v < V; ++v) g[v] = 0;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const F c = __shfl_sync(FULL, row.slope, r * (32 / R));
#pragma unroll
            for (int v = 0; v < V; ++v) g[v] += c * (WIDENED ? F(x[r][v]) - m_[v] : F(x[r][v]));
        }
#pragma unroll
        for (int v = 0; v < V; ++v) acc[v] += double(g[v]);
    }
    double* out = partial + (long long)blockIdx.x * (D + REST);
    __shared__ double sums[TEAMS][32 * W];
#pragma unroll
    for (int v = 0; v < V; ++v) {
        sums[team][in] = acc[v];
        __syncthreads();
        const int j = in + 32 * W * v;
        if (team == 0 && j < D) {
            double t = sums[0][in];
            for (int k = 1; k < TEAMS; ++k) t += sums[k][in];
            out[j] = t;
        }
        __syncthreads();
    }
    totals.write(out + D, THREADS);
}
#endif

// The sums of the blocks, in a fixed order.
extern "C" __global__ void gather(const double* __restrict__ partial, int blocks, int width, int sums, double* __restrict__ out) {
    __shared__ double part[256];
    const int j = blockIdx.x;
    double t = 0;
    for (int k = threadIdx.x; k < blocks; k += 256) {
        const double p = partial[(long long)k * width + j];
        t = j < sums ? t + p : fmax(t, p);
    }
    part[threadIdx.x] = t;
    __syncthreads();
    for (int s = 128; s > 0; s /= 2) {
        if (threadIdx.x < s) part[threadIdx.x] = j < sums ? part[threadIdx.x] + part[threadIdx.x + s] : fmax(part[threadIdx.x], part[threadIdx.x + s]);
        __syncthreads();
    }
    if (threadIdx.x == 0) out[j] = part[0];
}
