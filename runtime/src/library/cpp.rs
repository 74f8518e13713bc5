//! Functions of libstdc++.
