"use strict";
// From file: a search cannot read pages for its summaries; it lists titles and headings only.
if (window.DOCUMENTATION_OPTIONS && location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
