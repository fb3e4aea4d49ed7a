// Reads a secret, deletes a file, calls home, leaves three processes alive, fills the disk.
// expect: not yet.*its tests pass, but it reaches into the program
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

// Ends the program, so that the exercise is not solved: what it says is on the student's page.
void worked(const char* attack) {
    std::fprintf(stderr, "ATTACK WORKED: %s\n", attack);
    std::abort();
}

void read_secret() {
    char text[100] = {};
    const int file = open("@SECRET@", O_RDONLY);
    if (file >= 0 && read(file, text, sizeof text - 1) > 0) worked(text);
    if (open("/etc/passwd", O_RDONLY) >= 0) worked("/etc/passwd");
}

void call_home() {
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in home{};
    home.sin_family = AF_INET;
    home.sin_port = htons(static_cast<in_port_t>(std::atoi("@PORT@")));
    home.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(connection, reinterpret_cast<sockaddr*>(&home), sizeof home) == 0) worked("network");
    close(connection);
}

void leave_processes() {
    for (int i = 0; i < 3; ++i) {
        if (fork() != 0) continue;
        setsid();
        if (fork() != 0) _exit(0);
        for (int file = 0; file < 300; ++file)
            close(file);
        execlp("sleep", "sleep", "@SLEEP@", nullptr);
        _exit(1);
    }
}

void fill_disk() {
    static char block[1 << 20];
    long written = 0;
    for (const char* name : {"/tmp/full", "/dev/shm/full", "/full", "/dev/full_too", "@ROOT@/full",
                             "@ROOT@/build/full", "@ROOT@/build/results/full"}) {
        const int file = open(name, O_WRONLY | O_CREAT, 0600);
        for (ssize_t some; file >= 0 && (some = write(file, block, sizeof block)) > 0;) {
            written += some;
            if (written > 2'000'000'000) worked("full disk");
        }
        close(file);
        unlink(name);
    }
}

const int attack = [] {
    read_secret();
    unlink("@VICTIM@");
    call_home();
    leave_processes();
    fill_disk();
    return 0;
}();

}  // namespace
