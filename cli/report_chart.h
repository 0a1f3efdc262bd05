// Charts for pages without scripts: curves are SVG that stretches with the page, all text is HTML
// of a fixed size above, below and beside it, so that it stays legible at every width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

// `text` escaped for HTML, for elements and for attributes between double quotes.
std::string escaped(std::string_view text);

// "1,234,567"; at most `decimals` digits after the point, without trailing zeros.
std::string grouped(double value, int decimals);

enum class Quantity { kBytes, kBytesPerSecond, kCount, kSeconds };
// A value for people: "1.5 GiB", "812 ms", "17".
std::string value_text(double value, Quantity quantity);

// "12.5 %" of `whole`; "-" if there is none. 0 and 100 only for nothing and all.
std::string percent(double part, double whole);

struct Curve {
  std::string name;
  const char* color;         // class of the style sheet
  std::vector<double> y;     // as many as the chart has x
  std::string value;         // text beside the name: its last value, its maximum
  bool filled = false;       // down to `base`
  bool stepped = false;      // y[i] holds from x[i] to x[i + 1]
  std::vector<double> base;  // lower edge of the filled area; empty: 0
};

struct Mark {
  double x = 0;
  std::string text;
};

struct Chart {
  std::string id, title, note;  // note: what the chart shows, as text
  Quantity quantity = Quantity::kCount;
  std::vector<double> x;  // seconds, from 0, not decreasing
  std::vector<Curve> curves;
  std::vector<Mark> marks;  // vertical lines, in order of x
  std::string marks_name;   // what the marks are
};

// A <section>. Without points it contains a text that says so.
std::string chart_html(const Chart& chart);

// Dots over two counts of the same range.
struct Scatter {
  std::string name;  // what a dot is
  const char* color;
  double most = 1;  // both axes reach at least to it, from 0
  std::string up;   // what the vertical axis counts, in a word
  std::vector<double> x, y;
};

// A legend and a <div>, for a section of the caller.
std::string scatter_html(const Scatter& scatter);

}  // namespace sluice::cli
