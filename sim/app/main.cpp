#include <cstdio>
int main() { std::puts("ridgeline"); return 0; }
