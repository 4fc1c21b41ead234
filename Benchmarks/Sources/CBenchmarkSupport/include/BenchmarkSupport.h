// Operating system access for measurements: clocks, memory, processes. Linux provides every figure; on other systems,
// a figure that is unavailable is 0.
#ifndef HOLDFAST_BENCHMARK_SUPPORT_H
#define HOLDFAST_BENCHMARK_SUPPORT_H
#include <stdint.h>

double holdfast_benchmark_now(void);           // monotonic clock, in seconds
double holdfast_benchmark_cpu(void);           // CPU time of this process, user and system, in seconds
int64_t holdfast_benchmark_resident_kb(void);  // resident memory, in KiB
int64_t holdfast_benchmark_peak_kb(void);      // peak resident memory since exec, in KiB
int64_t holdfast_benchmark_heap_bytes(void);   // bytes in use by malloc

// Counting allocations costs a little time, so it is off until the first function is called. The second returns the
// allocations since then, the third the fsync and fdatasync calls of the process. Both return -1 where unsupported.
void holdfast_benchmark_start_counting(void);
int64_t holdfast_benchmark_allocations(void);
int64_t holdfast_benchmark_synchronizations(void);

// Whether a file descriptor is a terminal, and its number of columns (80 if unknown).
int holdfast_benchmark_is_terminal(int descriptor);
int holdfast_benchmark_columns(int descriptor);

// Writes the path of the running program, NUL-terminated. Returns 0 on success.
int holdfast_benchmark_own_path(char *path, uint32_t size);

// Writes all bytes. Returns 0 on success, otherwise errno.
int holdfast_benchmark_write(int descriptor, const void *bytes, uint64_t count);

// The size of a file in bytes, or -1 if it does not exist.
int64_t holdfast_benchmark_file_size(const char *path);

// Waits until a file is on the disk. Returns 0 on success, otherwise errno.
int holdfast_benchmark_synchronize(const char *path);

// Starts a program with its standard output in a pipe; it inherits the other descriptors. Returns 0 on success, otherwise errno.
int holdfast_benchmark_spawn(const char *path, char *const arguments[], int *pid, int *output);

// Reads the available bytes, waiting at most `seconds`. Returns the number of bytes, 0 at the end, -1 on an error with
// errno set, or -2 on a timeout.
int64_t holdfast_benchmark_read(int descriptor, void *bytes, uint64_t count, double seconds);

// Waits for a process. Returns its exit status, or the negated number of the signal that ended it.
int holdfast_benchmark_wait(int pid);
void holdfast_benchmark_kill(int pid);
void holdfast_benchmark_close(int descriptor);

// Opens a SQLite database, runs statements, and closes it. Writes the first column of the last row as a number, 0 without rows. Returns 0,
// or SQLite's code with a message.
int holdfast_benchmark_sql(const char *path, const char *script, int64_t *value, char *message, uint64_t size);
#endif
