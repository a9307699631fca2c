// Writes docs/configuration.md to standard output.

#include <iostream>

#include "config/setting_list.h"

int main() { std::cout << lockkeeper::poco::settingsPage(); }
