"""What people look at: pages of HTML, and charts."""
