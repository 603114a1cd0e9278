// SPDX-License-Identifier: Apache-2.0
//
// busy burns CPU for three() and one(), three parts to one, for a minute at most.
// "busy fork" waits for a byte, then lets a child do it and tells the child's PID.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t sum;

// Both spend their time in the same instructions, so that the rounds tell the shares.
__attribute__((noinline)) void spin(uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		sum += i;
}

// Some 10 ms, so that a sampler cannot march in step.
enum { ROUNDS = 5000000 };

__attribute__((noinline)) void three(void)
{
	spin(3 * (uint64_t)ROUNDS);
}

__attribute__((noinline)) void one(void)
{
	spin(ROUNDS);
}

__attribute__((noinline)) void burn(void)
{
	for (;;) {
		three();
		one();
	}
}

int main(int argc, char **argv)
{
	char go;
	pid_t child;

	alarm(60);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc < 2 || strcmp(argv[1], "fork")) {
		burn();
		return 0;
	}

	if (read(0, &go, 1) != 1)
		return 1;
	child = fork();
	if (child == 0) {
		alarm(60);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		burn();
	}
	printf("%d\n", child);
	fflush(stdout);
	waitpid(child, NULL, 0);
	return 0;
}
