# One command for each chore; `just` alone lists them.

_list:
    @{{ just_executable() }} --list --unsorted

# Shows the product at work in a minute
demo *arguments:
    cargo run --release -- demo {{ arguments }}

# Every test; `just test --embedded-only` needs no other programs
test *arguments:
    ./scripts/test {{ arguments }}

# Formats the code
fmt:
    cargo fmt --all

# Lints the code
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Checks the repository's own rules
tidy:
    cargo run --quiet -p xtask -- tidy

# Lists the requirement rows and the tests that name them
rows:
    cargo run --quiet -p xtask -- tidy --rows

# Writes the golden files anew; read the diff
golden *arguments:
    cargo run --quiet -p xtask -- golden {{ arguments }}

# Checks licences, bans and sources of the dependencies
deny:
    ./scripts/deny

# Builds the documentation of our crates
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Everything that a change must pass
ci:
    ./.ci/run
