// A lock that only one process holds at a time.
#pragma once

#include <filesystem>
#include <string>

namespace course::tool {

class FileLock {
  public:
    // Waits until no other process holds a lock on `file`, which is a directory, or a file that is
    // created if needed. `purpose`, such as "building day01", is written to the file. A process
    // that has to wait prints to stderr the purpose of the process that holds the lock, and for how
    // long; with an empty purpose it waits without a message. Throws BuildError when the file
    // cannot be opened or locked.
    FileLock(const std::filesystem::path& file, const std::string& purpose);
    ~FileLock();
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

  private:
    int descriptor_ = -1;
};

}  // namespace course::tool
