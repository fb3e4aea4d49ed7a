// One process at a time.
#pragma once

#include <filesystem>

namespace course::tool {

class FileLock {
  public:
    // Waits until nobody else holds a lock on `file`, a directory or a file, which is made if it is not there. If it has to wait it
    // says `waiting` to stderr first; null: nothing. Throws BuildError when the file cannot be opened or locked.
    FileLock(const std::filesystem::path& file, const char* waiting);
    ~FileLock();
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

  private:
    int descriptor_ = -1;
};

}  // namespace course::tool
