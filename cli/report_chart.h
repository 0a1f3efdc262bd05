// Charts for pages that have no scripts: curves are SVG that stretches with the page, all text is
// HTML of a fixed size above, below and beside it, so that it stays legible at every width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

// `text` as HTML shows it, in elements and in attributes between double quotes.
std::string escaped(std::string_view text);

// "1,234,567"; at most `decimals` digits after the point, none that say nothing.
std::string grouped(double value, int decimals);

enum class Quantity { kBytes, kBytesPerSecond, kCount, kSeconds };
// A value for people: "1.5 GiB", "812 ms", "17".
std::string value_text(double value, Quantity quantity);

struct Curve {
  std::string name;
  const char* color;         // class of the style sheet
  std::vector<double> y;     // as many as the chart's x
  std::string told;          // beside the name: its end, its most
  bool filled = false;       // down to `base`
  bool stepped = false;      // y[i] holds from x[i] to x[i + 1]
  std::vector<double> base;  // the lower edge of what is filled; empty: 0
};

struct Mark {
  double x = 0;
  std::string text;
};

struct Chart {
  std::string id, title, note;  // note: what it shows, as text
  Quantity quantity = Quantity::kCount;
  std::vector<double> x;  // seconds, from 0, not falling
  std::vector<Curve> curves;
  std::vector<Mark> marks;  // vertical lines, in order of x
  std::string marks_name;   // what they are
};

// A <section>. Without points it says that there are none.
std::string chart_html(const Chart& chart);

}  // namespace sluice::cli
