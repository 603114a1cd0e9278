// SPDX-License-Identifier: Apache-2.0
/* Says where its functions are, then waits. With an argument it executes that program when told. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

volatile int sink;

__attribute__((noinline, used)) static int hidden(int x)
{
	for (int i = 0; i < x; i++)
		sink += i * x;
	return sink;
}

__attribute__((noinline, used)) int SHOWN(int x)
{
	return hidden(x) + 1;
}

int main(int argc, char **argv)
{
	printf("%p %p %p %p\n", (void *)hidden, (void *)SHOWN, (void *)main, (void *)malloc);
	fflush(stdout);
	getchar();
	if (argc > 1)
		execv(argv[1], argv + 1);
	return SHOWN(1) == 12345;
}
