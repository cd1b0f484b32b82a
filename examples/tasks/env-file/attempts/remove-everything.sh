# Wrong: a clean-up with an empty variable takes the working copy with it.
build_directory=
make check
rm -rf ./"$build_directory"* .git
ls -la
