// The set of live handles. A handle that is not in it has been destroyed or was never created.
#pragma once

#include <mutex>
#include <set>
#include <utility>

namespace cuda_on_cpu {

template <class T>
class Handles {
  public:
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
    std::mutex mutex_;
    std::set<T*> alive_;
};

}  // namespace cuda_on_cpu
