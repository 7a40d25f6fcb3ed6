"""The laboratory: experiments that redo the paper, and the page that shows what they found."""
