#!/bin/bash
# Builds the kernel of the world kernel (docs/kernel.md), user-mode Linux that travels in time, from Debian's
# linux-source-6.12: tools/kernel.sh [FOLDER], which gets the program `linux`. 5 to 9 minutes, and 1.5 GB meanwhile.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../target/kernel}

[ "$(uname -m)" = x86_64 ] || {
    echo "weir: the world kernel runs on x86_64, and this machine is $(uname -m)" >&2
    exit 1
}
missing=()
need() { # tool, package
    command -v "$1" >/dev/null 2>&1 || missing+=("$2")
}
need apt-get apt
need dpkg-deb dpkg
need xz xz-utils
need patch patch
need gcc gcc
need ld binutils
need make make
need flex flex
need bison bison
need bc bc
! command -v gcc >/dev/null 2>&1 || echo '#include <sys/ptrace.h>' | gcc -E - >/dev/null 2>&1 || missing+=(libc6-dev)
[ ${#missing[@]} = 0 ] || {
    echo "weir: what compiles a kernel is missing: apt-get install ${missing[*]}" >&2
    exit 1
}

mkdir -p "$out"
out=$(cd "$out" && pwd)
build=$out/build
mkdir -p "$build"
cd "$build"
ls linux-source-6.12_*.deb >/dev/null 2>&1 || apt-get download linux-source-6.12 || {
    echo "weir: linux-source-6.12 cannot be had: apt-get update, on Debian 12 or 13" >&2
    exit 1
}

echo "Unpacking Linux"
# Drivers and architectures that are not compiled make most of the source.
left_out=()
for folder in gpu net/ethernet net/wireless media staging scsi infiniband iio usb clk pinctrl; do
    left_out+=(--exclude="*/drivers/$folder/*.[ch]")
done
for name in arm arm64 mips powerpc riscv s390 sparc; do
    left_out+=(--exclude="*/arch/$name/*.[chS]" --exclude="*/arch/$name/*.dts*")
done
rm -rf linux-source-6.12
dpkg-deb --fsys-tarfile linux-source-6.12_*.deb | tar xO ./usr/src/linux-source-6.12.tar.xz | xz -dcT0 |
    tar x "${left_out[@]}" --exclude='*/Documentation/*/*' --exclude='*/tools/testing/*' --exclude='*/tools/perf/*'
cd linux-source-6.12
patch -p1 --silent <"$here/kernel/virtual-time.patch"

echo "Compiling Linux"
# The same source makes the same kernel.
export KBUILD_BUILD_TIMESTAMP=2026-01-01 KBUILD_BUILD_USER=weir KBUILD_BUILD_HOST=weir KBUILD_BUILD_VERSION=1
log=$build/log
make -s ARCH=um allnoconfig KCONFIG_ALLCONFIG="$here/kernel/linux.config" >"$log" 2>&1 &&
    make -s ARCH=um -j"$(nproc)" linux >>"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    echo "weir: Linux does not compile here; all of what was said is in $log" >&2
    exit 1
}
strip -o "$out/linux" linux
cd "$out"
rm -rf "$build"
echo "$out/linux: Linux $("$out/linux" --version) for \`weir run --world kernel\`"
