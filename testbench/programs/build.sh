#!/bin/sh
# Builds every kernel: kernels/NAME.c -> OUT/NAME.elf, and those that have a small size -> OUT/small/NAME.elf; the lines of each in
# OUT/debug/NAME.debug and OUT/debug/small/NAME.debug; records the compiler in OUT/COMPILER.
#
# usage: build.sh [OUT]     OUT is elf/ beside this script unless given
#        CC=...             another compiler driver, CC=...gcc beside its objdump unless OBJDUMP=... says where that is
#
# The output depends on the sources and the compiler alone: no debug information in programs, no build id, and objects are named
# from inside a temporary folder, so that no path reaches the symbol table. Debug information is of the same program built anew with
# it, whose code is compared; paths in it begin at the repository.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/elf}
cc=${CC:-riscv64-unknown-elf-gcc}
objdump=${OBJDUMP:-${cc%gcc}objdump}
objcopy=${OBJCOPY:-${cc%gcc}objcopy}

# The words of a file of flags.
words() { sed 's/#.*//' "$here/$1"; }
flags="$(words compile.flags) -std=c11 -Wall -Wextra -Werror"
link=$(words link.flags)
link_lines=$(echo "$link" | sed 's/-Wl,--emit-relocs//')

mkdir -p "$out/small" "$out/debug/small"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# shellcheck disable=SC2086 # the flags are lists
{
  # Debian has no libgcc for rv32ima, and without this gcc would take the one for rv32ia, which multiplies in a loop.
  libgcc=$($cc $flags -march=rv32im -print-libgcc-file-name)
  $cc $flags -I "$here/include" -c "$here/crt0.S" -o crt0.o
  mkdir -p small debug/small
  debug="-g1 -ffile-prefix-map=$here/= -ffile-prefix-map=$work=testbench/programs"
  # build SOURCE FILE FLAG...
  build() {
    source=$1 elf=$2 name=$(basename "$1" .c)
    shift 2
    $cc $flags "$@" -I "$here/include" -c "$source" -o "$name.o"
    $cc $flags $link -T "$here/heddle.ld" crt0.o "$name.o" "$libgcc" -o "$elf"
    # The default core has the atomic memory operations, but neither of these.
    case $name in
      mcs_lock | cas_queue | hash_table) ;;
      *)
        if $objdump -d "$elf" | grep -E '\s(lr|sc)\.w'; then
          echo "$elf: load-reserved or store-conditional, which the default core does not have" >&2
          exit 1
        fi
        ;;
    esac
    lines "$source" "$elf" "$name" "$@"
    chmod 644 "$elf" "debug/${elf%.elf}.debug"
  }
  # lines SOURCE FILE NAME FLAG...
  lines() {
    source=$1 elf=$2 name=$3
    shift 3
    $cc $flags $debug "$@" -I "$here/include" -c "$source" -o "$name-debug.o"
    $cc $flags $link_lines -T "$here/heddle.ld" crt0.o "$name-debug.o" "$libgcc" -o with-debug.elf
    for file in "$elf" with-debug.elf; do $objcopy -O binary -j .text "$file" "$(basename "$file").text"; done
    cmp "$(basename "$elf").text" with-debug.elf.text
    # It says of each that a segment is empty.
    $objcopy --only-keep-debug -w --strip-symbol ".L*" -R .debug_frame -R .debug_aranges -R .riscv.attributes -R .heddle.predict \
      with-debug.elf "debug/${elf%.elf}.debug" 2>said || { cat said >&2; exit 1; }
    rm with-debug.elf
  }
  for source in "$here"/kernels/*.c; do
    name=$(basename "$source" .c)
    build "$source" "$name.elf"
    if grep -q -e HEDDLE_SIZE -e rsbench.h "$source"; then build "$source" "small/$name.elf" -DHEDDLE_SMALL; fi
  done
}
$cc --version | head -n 1 > COMPILER
mv debug/small/*.debug "$out"/debug/small/
mv debug/*.debug "$out"/debug/
mv small/*.elf "$out"/small/
mv ./*.elf COMPILER "$out"/
