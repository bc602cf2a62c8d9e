// The same in C++, with handles that close themselves, exceptions, and an operator that is a lambda.
//
//     own_operator leaky.pte
#include <cstdio>

#include "edgepack.hpp"

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    try {
        edgepack::Options options;
        options.kernel("my::leaky.out(Tensor self, float slope, *, Tensor(a!) out) -> Tensor(a!)", [](edgepack::Call call) {
            const float slope = static_cast<float>(call.number(1));
            call.resize_like(2, 0);
            const EdgepackTensor input = call.tensor(0);
            const auto [x, count] = edgepack::elements<float>(input);
            const auto [y, room] = edgepack::elements<float>(call.output(2));
            if (room != count) throw std::invalid_argument("the output has another size");
            for (size_t index = 0; index < count; index++) y[index] = x[index] < 0 ? x[index] * slope : x[index];
        });

        const edgepack::Program program = edgepack::Program::open(argv[1]);
        edgepack::Method forward = program.load("forward", options);
        const std::vector<size_t> sizes = {3};
        const std::vector<float> data = {-2, 0, 3};
        const auto outputs = forward.run({edgepack::input(sizes, data)});
        const auto [y, count] = edgepack::elements<float>(outputs.at(0).tensor);
        for (size_t index = 0; index < count; index++) std::printf("%g ", y[index]);
        std::printf("\n");

        // Inputs that do not fit are refused, in words.
        try {
            const std::vector<size_t> other = {2};
            forward.run({edgepack::input(other, data.data(), 2)});
            return 1;
        } catch (const edgepack::Error &error) {
            std::printf("%s: %s\n", error.path.c_str(), error.what());
        }
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
