// What a measurement asks of the operating system: clocks, memory, processes. Linux gives all figures; elsewhere
// those that cannot be had are 0.
#ifndef HOLDFAST_BENCHMARK_SUPPORT_H
#define HOLDFAST_BENCHMARK_SUPPORT_H
#include <stdint.h>

double holdfast_benchmark_now(void);           // seconds of the monotonic clock
double holdfast_benchmark_cpu(void);           // CPU seconds of this process, user and system
int64_t holdfast_benchmark_resident_kb(void);  // memory resident now
int64_t holdfast_benchmark_peak_kb(void);      // most memory resident at any time since exec
int64_t holdfast_benchmark_heap_bytes(void);   // bytes in use by malloc

// Counting costs a little time, so it begins when asked for. Calls of malloc and its like, and of fsync and fdatasync, since
// then; -1 where that cannot be known.
void holdfast_benchmark_start_counting(void);
int64_t holdfast_benchmark_allocations(void);
int64_t holdfast_benchmark_synchronizations(void);

// Whether a file descriptor is a terminal, and how many columns it has (80 when it does not say).
int holdfast_benchmark_is_terminal(int descriptor);
int holdfast_benchmark_columns(int descriptor);

// Writes the path of the running program with its NUL; 0 when it worked.
int holdfast_benchmark_own_path(char *path, uint32_t size);

// Writes all bytes; 0 when it worked, otherwise the error number.
int holdfast_benchmark_write(int descriptor, const void *bytes, uint64_t count);

// The bytes of a file, -1 when there is none.
int64_t holdfast_benchmark_file_size(const char *path);

// Starts a program; standard output goes to a pipe, the rest is inherited. 0 when it worked, otherwise the error number.
int holdfast_benchmark_spawn(const char *path, char *const arguments[], int *pid, int *output);

// Reads what is there, waiting at most so many seconds. The number of bytes, 0 at the end, -1 on an error with
// errno set, -2 when the time is over.
int64_t holdfast_benchmark_read(int descriptor, void *bytes, uint64_t count, double seconds);

// Waits for a process. The exit status, or minus the number of the signal that ended it.
int holdfast_benchmark_wait(int pid);
void holdfast_benchmark_kill(int pid);
void holdfast_benchmark_close(int descriptor);
#endif
