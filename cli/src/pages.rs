//! The pages in `docs`: what they link to, name and show is there.

mod links;
