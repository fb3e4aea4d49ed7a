// The set of live handles. A handle that is not in it has been destroyed or was never created.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

#include "environment.hpp"

namespace cuda_on_cpu {

template <class T>
class Handles {
  public:
    Handles() = default;
    // With CUDA_ON_CPU_LEAKS=on, those that are alive when the program ends are reported: `what`
    // they are, and the call that destroys one. An object like this must not be destroyed before.
    Handles(const char* what, const char* destroyer) : what_(what), destroyer_(destroyer) {
        if (!environment().leaks) return;
        static Handles* reported = nullptr;
        reported = this;
        std::atexit([] { reported->tell_leaks(); });
    }

    T* create(T object) { return add(new T(std::move(object))); }
    T* add(T* created) {
        const std::scoped_lock lock(mutex_);
        alive_.insert(created);
        return created;
    }
    bool contains(T* handle) {
        const std::scoped_lock lock(mutex_);
        return alive_.contains(handle);
    }
    // Removes the handle but keeps the object.
    bool remove(T* handle) {
        const std::scoped_lock lock(mutex_);
        return alive_.erase(handle) != 0;
    }
    bool destroy(T* handle) {
        if (!remove(handle)) return false;
        delete handle;
        return true;
    }
    template <class Function>
    void for_each(Function function) {
        const std::scoped_lock lock(mutex_);
        for (T* handle : alive_)
            function(*handle);
    }

  private:
    void tell_leaks() {
        const std::scoped_lock lock(mutex_);
        if (alive_.empty()) return;
        std::fprintf(stderr, "cuda_on_cpu: %zu %s%s never destroyed: is a %s missing?\n", alive_.size(),
                     what_, alive_.size() == 1 ? " was" : "s were", destroyer_);
    }

    const char* what_ = nullptr;
    const char* destroyer_ = nullptr;
    std::mutex mutex_;
    std::set<T*> alive_;
};

}  // namespace cuda_on_cpu
