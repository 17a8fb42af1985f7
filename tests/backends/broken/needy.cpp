// A plugin whose library is missing at run time: it needs this function from an absent shared object.
extern "C" int medley_test_missing_library();
extern "C" __attribute__((visibility("default"))) int medley_needs() { return medley_test_missing_library(); }
