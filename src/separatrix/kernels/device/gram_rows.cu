// The Gram matrix of dense rows on the device in double precision, each row read once for a pair of panels of columns.
//
//   G = sum s z z',   z = (x - m, 1)                        the last column, of ones, gives sum s (x - m) and sum s
//
// Rows are converted on their way into shared memory, the next ones being loaded meanwhile; tensor cores of double precision multiply
// and add them, so that G is as exact as on the host. Lane (g, t) of a warp holds row t of the column g of a group of eight, for either operand:
//
//   mma m16n8k8:   A = (s z)' of two groups of columns,   B = z of one,   C += A B
//
// The tiles of C on and above the diagonal are shared out over the warps and stay in registers until the end; blocks of threads take
// fixed rows, and their sums are added in a fixed order: the bits do not differ between runs.
// Known at compile time: T (stored numbers), D columns, PAIRED (two panels, or one with itself), GROUPS (of eight columns in
// a panel), ROWS at a time, WARPS, MINB.
constexpr int THREADS = 32 * WARPS, PANEL = 8 * GROUPS, PANELS = PAIRED ? 2 : 1;
constexpr int PITCH = PANEL + 4;   // from row to row in shared memory: no two lanes of half a warp meet in a bank
constexpr int V = (PANEL + 31) / 32, R = ROWS / WARPS;   // columns of a lane, rows of a warp, where they are loaded
constexpr int STRIPS = (GROUPS + 1) / 2;   // of sixteen columns
constexpr int AT_ONCE = PAIRED ? 1 : 2;   // eights of rows whose operands are loaded together, as far as there are registers

// Tiles in pairs of strips, group by group, so that neighbours in the order share operands.
constexpr int first_group(int strip) { return PAIRED ? 0 : 2 * strip; }
constexpr int all_tiles() { int t = 0; for (int i = 0; i < STRIPS; ++i) t += GROUPS - first_group(i); return t; }
constexpr int SHARE = (all_tiles() + WARPS - 1) / WARPS;
struct Plan { int strip[SHARE], group[SHARE], count; };   // of the tiles of a warp
constexpr Plan plan_of(int warp) {
    Plan plan{};
    int tile = 0;
    for (int pair = 0; pair < STRIPS; pair += 2)
        for (int group = first_group(pair); group < GROUPS; ++group)
            for (int strip = pair; strip < pair + 2 && strip < STRIPS; ++strip)
                if (group >= first_group(strip)) {
                    if (tile >= warp * SHARE && tile < (warp + 1) * SHARE) {
                        plan.strip[plan.count] = strip;
                        plan.group[plan.count] = group;
                        ++plan.count;
                    }
                    ++tile;
                }
    return plan;
}
constexpr bool fresh_strip(const Plan& plan, int i) {   // no tile before this one of the warp has used its strip
    for (int k = 0; k < i; ++k) if (plan.strip[k] == plan.strip[i]) return false;
    return true;
}

struct Rows { const T* X; long long stride, n; const double* weights; int left, right, hidden; };

__device__ __forceinline__ void multiply(double* c, const double* a, const double* b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

struct Ahead {   // the part of the next rows that a lane has loaded
    T x[PANELS][R][V];
    bool counts[R];   // where rows without weight may hold anything
    double weight;

    __device__ __forceinline__ void load(const Rows& rows, long long tile) {
        const int lane = threadIdx.x & 31, own = threadIdx.x >> 5;
        const long long base = tile * ROWS;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const long long at = base + own + r * WARPS;
            counts[r] = at < rows.n && (!rows.hidden || !rows.weights || rows.weights[at] > 0);
        }
#pragma unroll
        for (int p = 0; p < PANELS; ++p) {
            const int first = (p ? rows.right : rows.left) + lane;
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const long long at = base + own + r * WARPS;
                const T* row = rows.X + at * rows.stride + first;
#pragma unroll
                for (int v = 0; v < V; ++v) x[p][r][v] = at < rows.n && first + 32 * v < D ? __ldcs(row + 32 * v) : T(first + 32 * v == D);
            }
        }
        const long long at = base + threadIdx.x;
        weight = threadIdx.x >= ROWS || at >= rows.n ? 0.0 : rows.weights ? rows.weights[at] : 1.0;
    }

    __device__ __forceinline__ void store(const double* centres, double* z, double* held) const {
        const int lane = threadIdx.x & 31, own = threadIdx.x >> 5;
#pragma unroll
        for (int p = 0; p < PANELS; ++p)
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const int j = lane + 32 * v;
                if (j >= PANEL) continue;
                const double centre = centres[p * PANEL + j];
#pragma unroll
                for (int r = 0; r < R; ++r) z[(p * ROWS + own + r * WARPS) * PITCH + j] = counts[r] ? double(x[p][r][v]) - centre : 0.0;
            }
        if (threadIdx.x < ROWS) held[threadIdx.x] = weight;
    }
};

template <int WARP> __device__ void run(const Rows& rows, double* z, double* held, const double* centres, double* out) {
    constexpr Plan plan = plan_of(WARP);
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    double c[SHARE][4];
#pragma unroll
    for (int i = 0; i < SHARE; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k) c[i][k] = 0;
    Ahead next;
    next.load(rows, blockIdx.x);
    int turn = 0;
    for (long long tile = blockIdx.x; tile * ROWS < rows.n; tile += gridDim.x, turn ^= 1) {
        double* here = z + turn * PANELS * ROWS * PITCH;
        next.store(centres, here, held + turn * ROWS);
        asm volatile("bar.sync 0;" ::: "memory");
        next.load(rows, tile + gridDim.x);
        const double* left = here;
        const double* right = PAIRED ? left + ROWS * PITCH : left;
        const double* s = held + turn * ROWS;
#pragma unroll AT_ONCE
        for (int k = 0; k < ROWS; k += 8) {
            double a[2][4], b[2];
#pragma unroll
            for (int i = 0; i < SHARE; ++i) {
                if (i >= plan.count) break;
                const int strip = plan.strip[i], group = plan.group[i];
                if (fresh_strip(plan, i)) {
                    const double high = s[k + t], low = s[k + t + 4];
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        const bool there = 2 * strip + h < GROUPS;
                        const double* column = left + (k + t) * PITCH + 16 * strip + 8 * h + g;
                        a[strip & 1][h] = there ? high * column[0] : 0.0;
                        a[strip & 1][h + 2] = there ? low * column[4 * PITCH] : 0.0;
                    }
                }
                if (i == 0 || group != plan.group[i > 0 ? i - 1 : 0]) {
                    const double* column = right + (k + t) * PITCH + 8 * group + g;
                    b[0] = column[0];
                    b[1] = column[4 * PITCH];
                }
                multiply(c[i], a[strip & 1], b);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < SHARE; ++i) {
        if (i >= plan.count) break;
        const int row = 16 * plan.strip[i] + g, column = 8 * plan.group[i] + 2 * t;
        double* at = out + (long long)row * PANEL + column;
        at[0] = c[i][0]; at[1] = c[i][1];
        if (row + 8 < PANEL) { at[8 * PANEL] = c[i][2]; at[8 * PANEL + 1] = c[i][3]; }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MINB)
gram_pass(const T* __restrict__ X, long long stride, const double* __restrict__ weights, const double* __restrict__ m, int left, int right, int hidden,
          long long n, double* __restrict__ partial) {
    extern __shared__ __align__(16) unsigned char bytes[];
    double* z = reinterpret_cast<double*>(bytes);   // two turns of rows
    __shared__ double held[2 * ROWS], centres[PANELS * PANEL];
    const Rows rows{X, stride, n, weights, left, right, hidden};
    for (int i = threadIdx.x; i < PANELS * PANEL; i += THREADS) {
        const int j = (i < PANEL ? left : right) + i % PANEL;
        centres[i] = m && j < D ? m[j] : 0.0;
    }
    __syncthreads();
    double* out = partial + (long long)blockIdx.x * PANEL * PANEL;
    switch (threadIdx.x >> 5) {
        case 0: run<0>(rows, z, held, centres, out); break;
        case 1: run<1>(rows, z, held, centres, out); break;
        case 2: run<2>(rows, z, held, centres, out); break;
#if WARPS_8
        case 3: run<3>(rows, z, held, centres, out); break;
        case 4: run<4>(rows, z, held, centres, out); break;
        case 5: run<5>(rows, z, held, centres, out); break;
        case 6: run<6>(rows, z, held, centres, out); break;
#endif
        default: run<WARPS - 1>(rows, z, held, centres, out);
    }
}

// The sums of the blocks, in a fixed order: 32 entries to a block of threads.
extern "C" __global__ void gather(const double* __restrict__ partial, int blocks, double* __restrict__ out) {
    __shared__ double part[8][32];
    const int j = blockIdx.x * 32 + (threadIdx.x & 31), row = threadIdx.x >> 5;
    double t = 0;
    if (j < PANEL * PANEL)
        for (int k = row; k < blocks; k += 8) t += partial[(long long)k * PANEL * PANEL + j];
    part[row][threadIdx.x & 31] = t;
    __syncthreads();
    if (row == 0 && j < PANEL * PANEL) {
        for (int k = 1; k < 8; ++k) t += part[k][threadIdx.x & 31];
        out[j] = t;
    }
}
