/// Nothing: the target that this file belongs to makes the precompiled header of the tests.
int main() {}
