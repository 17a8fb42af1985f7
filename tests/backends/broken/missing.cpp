// The library that `needy` does not find.
extern "C" __attribute__((visibility("default"))) int medley_test_missing_library() { return 1; }
