#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "BenchmarkSupport.h"
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <features.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

double holdfast_benchmark_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double holdfast_benchmark_cpu(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
         + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

int64_t holdfast_benchmark_resident_kb(void) {
  long total = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
  fclose(file);
  return (int64_t)resident * (sysconf(_SC_PAGESIZE) / 1024);
}

// Reads VmHWM, because the peak from getrusage includes the parent's memory before exec.
int64_t holdfast_benchmark_peak_kb(void) {
  char line[256];
  long peak = 0;
  FILE *file = fopen("/proc/self/status", "r");
  if (!file) return 0;
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "VmHWM: %ld", &peak) == 1) break;
  fclose(file);
  return peak;
}

int64_t holdfast_benchmark_heap_bytes(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  struct mallinfo2 heap = mallinfo2();
  return (int64_t)(heap.uordblks + heap.hblkhd);
#else
  return 0;
#endif
}
