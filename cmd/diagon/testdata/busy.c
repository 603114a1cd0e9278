// SPDX-License-Identifier: Apache-2.0
/*
 * busy SECONDS [STATUS]: burns that much CPU time, three quarters of it in hot and one in
 * warm, in turns, and ends with STATUS. The turns are of different lengths, so as not to
 * march in step with a sampler.
 */
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

static double used(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) void hot(double until)
{
	while (used() < until)
		for (int i = 0; i < 10000; i++)
			sink += i;
}

__attribute__((noinline)) void warm(double until)
{
	while (used() < until)
		for (int i = 0; i < 10000; i++)
			sink += i;
}

int main(int argc, char **argv)
{
	double end = argc > 1 ? atof(argv[1]) : 1;

	while (used() < end) {
		double turn = 0.010 + 0.020 * rand() / RAND_MAX;

		hot(used() + turn * 0.75);
		warm(used() + turn * 0.25);
	}
	return argc > 2 ? atoi(argv[2]) : 0;
}
