// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <map>
#include <string>

namespace fleet {
template <typename T> struct Ring {
	__attribute__((noinline)) T push(T v) { return held += v; }
	T held{};
};
}

template float fleet::Ring<float>::push(float);
volatile float sink;

int main()
{
	fleet::Ring<float> r;
	sink = r.push(1);
	auto push = &fleet::Ring<float>::push;
	printf("%p\n", *reinterpret_cast<void **>(&push));
	fflush(stdout);
	getchar();
}
