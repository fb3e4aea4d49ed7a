// One process at a time.
#pragma once

#include <filesystem>
#include <string>

namespace course::tool {

class FileLock {
  public:
    // Waits until nobody else holds a lock on `file`, a directory or a file, which is made if it is
    // not there. A file tells those who wait what it is locked for: `purpose`, such as "building
    // day01". Who has to wait says so to stderr, with the purpose of the one who holds it and for
    // how long; with an empty purpose it waits in silence. Throws BuildError when the file cannot
    // be opened or locked.
    FileLock(const std::filesystem::path& file, const std::string& purpose);
    ~FileLock();
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

  private:
    int descriptor_ = -1;
};

}  // namespace course::tool
