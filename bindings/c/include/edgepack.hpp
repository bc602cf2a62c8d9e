/*
 * edgepack for C++17: handles that close themselves, errors as exceptions, callbacks that may throw.
 *
 * Everything here is a thin layer over edgepack.h, which says whose memory is whose. Views (Value, Tensor) are valid for as
 * long as edgepack.h says.
 */
#ifndef EDGEPACK_HPP
#define EDGEPACK_HPP

#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "edgepack.h"

namespace edgepack {

inline std::string text(EdgepackText text) { return std::string(text.data, text.len); }

/* An error of the library. */
class Error : public std::runtime_error {
  public:
    /* Closes the object of C. */
    explicit Error(EdgepackError error)
        : std::runtime_error(text(edgepack_error_message(error))), code(edgepack_error_code(error)),
          rule(text(edgepack_error_rule(error))), path(text(edgepack_error_path(error))) {
        has_offset = edgepack_error_offset(error, &offset) != 0;
        edgepack_error_close(error);
    }

    EdgepackCode code;
    std::string rule;
    std::string path;
    bool has_offset = false;
    uint64_t offset = 0;
};

/* Calls a function of C whose last argument is an error; throws it. */
template <typename Function, typename... Arguments> void check(Function function, Arguments... arguments) {
    EdgepackError error = {0};
    if (function(arguments..., &error) != EDGEPACK_CODE_OK) throw Error(error);
}

/* A handle that closes itself. */
template <typename Handle, EdgepackCode (*Close)(Handle)> class Owned {
  public:
    Owned() = default;
    explicit Owned(Handle handle) : handle(handle) {}
    Owned(Owned &&other) noexcept : handle(std::exchange(other.handle, Handle{0})) {}
    Owned &operator=(Owned &&other) noexcept {
        if (this != &other) {
            Close(handle);
            handle = std::exchange(other.handle, Handle{0});
        }
        return *this;
    }
    ~Owned() { Close(handle); }

    Handle get() const { return handle; }
    Handle *put() {
        Close(handle);
        handle = Handle{0};
        return &handle;
    }

  private:
    Handle handle = {0};
};

using Limits = Owned<EdgepackLimits, edgepack_limits_close>;
using Findings = Owned<EdgepackFindings, edgepack_findings_close>;
using Report = Owned<EdgepackReport, edgepack_report_close>;
using Data = Owned<EdgepackData, edgepack_data_close>;
using Signature = Owned<EdgepackSignature, edgepack_signature_close>;

/* The type of an element. */
template <typename T> constexpr int32_t dtype() {
    if constexpr (std::is_same_v<T, float>) return EDGEPACK_DTYPE_FLOAT;
    else if constexpr (std::is_same_v<T, double>) return EDGEPACK_DTYPE_DOUBLE;
    else if constexpr (std::is_same_v<T, bool>) return EDGEPACK_DTYPE_BOOL;
    else if constexpr (std::is_same_v<T, uint8_t>) return EDGEPACK_DTYPE_BYTE;
    else if constexpr (std::is_same_v<T, int8_t>) return EDGEPACK_DTYPE_CHAR;
    else if constexpr (std::is_same_v<T, int16_t>) return EDGEPACK_DTYPE_SHORT;
    else if constexpr (std::is_same_v<T, int32_t>) return EDGEPACK_DTYPE_INT;
    else if constexpr (std::is_same_v<T, int64_t>) return EDGEPACK_DTYPE_LONG;
    else if constexpr (std::is_same_v<T, uint16_t>) return EDGEPACK_DTYPE_U_INT16;
    else if constexpr (std::is_same_v<T, uint32_t>) return EDGEPACK_DTYPE_U_INT32;
    else if constexpr (std::is_same_v<T, uint64_t>) return EDGEPACK_DTYPE_U_INT64;
    else static_assert(!sizeof(T), "not the type of an element");
}

/* Views elements and sizes of the caller's as an input. */
template <typename T> EdgepackValue input(const std::vector<size_t> &sizes, const T *data, size_t count) {
    EdgepackValue value = {};
    value.kind = EDGEPACK_KIND_TENSOR;
    value.tensor.dtype = dtype<T>();
    value.tensor.rank = sizes.size();
    value.tensor.sizes = sizes.data();
    value.tensor.data = data;
    value.tensor.len = count * sizeof(T);
    return value;
}

template <typename T> EdgepackValue input(const std::vector<size_t> &sizes, const std::vector<T> &data) {
    return input(sizes, data.data(), data.size());
}

/* The elements of a tensor, which has to be of this type. */
template <typename T> std::pair<const T *, size_t> elements(const EdgepackTensor &tensor) {
    if (tensor.dtype != dtype<T>()) throw std::invalid_argument("the tensor has elements of another type");
    return {static_cast<const T *>(tensor.data), tensor.len / sizeof(T)};
}

template <typename T> std::pair<T *, size_t> elements(const EdgepackTensorMut &tensor) {
    if (tensor.dtype != dtype<T>()) throw std::invalid_argument("the tensor has elements of another type");
    return {static_cast<T *>(tensor.data), tensor.len / sizeof(T)};
}

/* A call of an operator; its functions throw. */
class Call {
  public:
    explicit Call(EdgepackCall call) : call(call) {}

    EdgepackTensor layout(size_t arg) const { return ask<EdgepackTensor>(edgepack_call_layout, arg); }
    EdgepackTensor tensor(size_t arg) const { return ask<EdgepackTensor>(edgepack_call_tensor, arg); }
    EdgepackTensorMut output(size_t arg) const { return ask<EdgepackTensorMut>(edgepack_call_output, arg); }
    double number(size_t arg) const { return ask<double>(edgepack_call_double, arg); }
    int64_t integer(size_t arg) const { return ask<int64_t>(edgepack_call_int, arg); }

    /* Gives an output the sizes of another tensor. */
    void resize_like(size_t arg, size_t other) const {
        const EdgepackTensor like = layout(other);
        pass(edgepack_call_resize(call, arg, like.sizes, like.rank));
    }

    EdgepackCall get() const { return call; }

    /* A code of a function that noted its reason. */
    struct Failed {
        EdgepackCode code;
    };

    static void pass(EdgepackCode code) {
        if (code != EDGEPACK_CODE_OK) throw Failed{code};
    }

  private:
    template <typename Result, typename Function> Result ask(Function function, size_t arg) const {
        Result result = {};
        pass(function(call, arg, &result));
        return result;
    }

    EdgepackCall call;
};

/* Runs a function that may throw where nothing may be thrown. */
template <typename Function> int32_t guarded(EdgepackCall call, Function function) noexcept {
    try {
        function();
        return EDGEPACK_CODE_OK;
    } catch (const Call::Failed &failed) {
        return failed.code;
    } catch (const std::bad_alloc &) {
        return EDGEPACK_CODE_MEMORY_ALLOCATION_FAILED;
    } catch (const std::exception &error) {
        edgepack_call_fail(call, error.what());
        return EDGEPACK_CODE_INVALID_ARGUMENT;
    } catch (...) {
        edgepack_call_fail(call, "something was thrown that is no exception");
        return EDGEPACK_CODE_INTERNAL;
    }
}

/* Options of loading. */
class Options : public Owned<EdgepackOptions, edgepack_options_close> {
  public:
    Options() { check(edgepack_options_new, put()); }

    Options &threads(size_t count) {
        check(edgepack_options_set_threads, get(), count);
        return *this;
    }

    Options &data(const Data &data) {
        check(edgepack_options_add_data, get(), data.get());
        return *this;
    }

    /* Adds an operator that is a function of a call. It may throw, and runs for different methods at the same time. */
    Options &kernel(const char *schema, std::function<void(Call)> run) {
        auto held = std::make_unique<std::function<void(Call)>>(std::move(run));
        EdgepackKernel kernel = {};
        kernel.schema = schema;
        kernel.user = held.get();
        kernel.run = [](void *user, void *, EdgepackCall call) -> int32_t {
            return guarded(call, [&] { (*static_cast<std::function<void(Call)> *>(user))(Call(call)); });
        };
        kernel.release = [](void *user) { delete static_cast<std::function<void(Call)> *>(user); };
        check(edgepack_options_add_kernel, get(), static_cast<const EdgepackKernel *>(&kernel));
        held.release();
        return *this;
    }
};

/* A method, ready to run. */
class Method : public Owned<EdgepackMethod, edgepack_method_close> {
  public:
    /* Runs on inputs; what the outputs lead to is there until the next run. */
    std::vector<EdgepackValue> run(const std::vector<EdgepackValue> &inputs) {
        size_t count = 0;
        check(edgepack_method_counts, get(), static_cast<size_t *>(nullptr), &count);
        std::vector<EdgepackValue> outputs(count);
        check(edgepack_method_run, get(), inputs.data(), inputs.size(), outputs.data(), outputs.size());
        return outputs;
    }
};

/* A program. */
class Program : public Owned<EdgepackProgram, edgepack_program_close> {
  public:
    static Program open(const std::string &path, const Limits &limits = Limits()) {
        Program program;
        check(edgepack_program_open, path.c_str(), limits.get(), program.put());
        return program;
    }

    /* Opens a copy of bytes. */
    static Program open_copy(const void *data, size_t len, const Limits &limits = Limits()) {
        Program program;
        check(edgepack_program_open_copy, data, len, limits.get(), program.put());
        return program;
    }

    Method load(const std::string &name) const { return load(name, EdgepackOptions{0}); }
    Method load(const std::string &name, const Options &options) const { return load(name, options.get()); }

  private:
    Method load(const std::string &name, EdgepackOptions options) const {
        Method method;
        check(edgepack_method_load, get(), name.c_str(), options, method.put());
        return method;
    }
};

/* Inspects a file; the result is JSON. */
inline std::string inspect(const std::string &path, EdgepackPreset preset = EDGEPACK_PRESET_MACHINE) {
    Report report;
    EdgepackFile file = {};
    file.path = path.c_str();
    EdgepackText output = {};
    check(edgepack_inspect, static_cast<const EdgepackFile *>(&file), static_cast<uint32_t>(preset), report.put());
    check(edgepack_report_output, report.get(), &output);
    return text(output);
}

/* Verifies a file of any format. */
inline Findings verify(const std::string &path, EdgepackPreset preset = EDGEPACK_PRESET_MACHINE) {
    Findings findings;
    EdgepackFile file = {};
    file.path = path.c_str();
    check(edgepack_verify, static_cast<const EdgepackFile *>(&file), static_cast<uint32_t>(preset), findings.put());
    return findings;
}

} // namespace edgepack

#endif
