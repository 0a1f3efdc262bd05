#include "cli/report_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/text.h"

namespace sluice::cli {
namespace {

constexpr double kWide = 1000, kHigh = 300;  // in the SVG's own units
constexpr int kSteps = 5;                    // the most intervals between the lines of an axis
constexpr double kMarkLabel = 12;            // percent of the width that a mark's label needs
constexpr double kLargeCount = 10'000;       // labels of an axis to it are of thousands
constexpr double kEdge = 8;                  // percent: a label nearer to the edge would stick out

// 1, 2, 2.5 or 5 times a power of ten: the smallest with which `most` needs at most kSteps steps.
double nice_step(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / kSteps)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power * kSteps >= most * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// The unit of an axis: one unit is `size` of the quantity.
struct Scale {
  double size = 1;
  const char* unit = "";
  const char* per = "";  // "/s" of a rate
};

Scale scale_of(double most, Quantity quantity) {
  static constexpr Scale kBytes[] = {{1, "B"},          {1024., "KiB"},
                                     {1048576., "MiB"}, {1073741824., "GiB"},
                                     {0x1p40, "TiB"},   {0x1p50, "PiB"}};
  static constexpr Scale kTimes[] = {
      {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}, {60, "min"}, {3600, "h"}};
  const auto largest = [most](auto& scales, double least, const char* per) {
    Scale best = scales[0];
    for (const Scale& scale : scales) {
      if (most >= least * scale.size) best = scale;
    }
    best.per = per;
    return best;
  };
  switch (quantity) {
    case Quantity::kBytes:
      return largest(kBytes, 1, "");
    case Quantity::kBytesPerSecond:
      return largest(kBytes, 1, "/s");
    case Quantity::kSeconds:
      return most >= 180 ? largest(kTimes, 3, "") : most >= 1 ? kTimes[2] : largest(kTimes, 1, "");
    case Quantity::kCount:
      break;
  }
  return {};
}

std::string with_unit(const std::string& number, const Scale& scale) {
  return *scale.unit == '\0' ? number : fmt::format("{} {}{}", number, scale.unit, scale.per);
}

struct Axis {
  double most = 1;  // the end of the axis
  double step = 1;
  Scale scale;
  std::string label(double at) const {
    if (at == 0) return "0";
    if (*scale.unit != '\0' || most < kLargeCount) {
      return with_unit(fmt::format("{:g}", at / scale.size), scale);
    }
    return most < 100 * kLargeCount ? fmt::format("{:g}k", at / 1e3)
                                    : fmt::format("{:g}M", at / 1e6);
  }
};

Axis axis_of(double most, Quantity quantity, bool to_next_line) {
  Axis axis;
  if (!(most > 0)) most = quantity == Quantity::kSeconds ? 1e-3 : 1;
  axis.scale = scale_of(most, quantity);
  axis.step = nice_step(most / axis.scale.size) * axis.scale.size;
  if (quantity == Quantity::kCount) axis.step = std::max(axis.step, 1.0);
  axis.most = to_next_line ? std::ceil(most / axis.step - 1e-9) * axis.step : most;
  return axis;
}

struct Frame {
  Axis x, y;
  std::string point(double at, double value) const {
    const double height = std::clamp(value / y.most, 0.0, 1.0);
    return fmt::format("{:.1f},{:.1f}", at / x.most * kWide, (1 - height) * kHigh);
  }
};

std::string line_of(const Frame& frame, const std::vector<double>& x, const std::vector<double>& y,
                    bool stepped) {
  std::string points;
  for (size_t i = 0; i < x.size(); ++i) {
    if (stepped && i > 0) points += frame.point(x[i], y[i - 1]) + " ";
    points += frame.point(x[i], y[i]) + " ";
  }
  return points;
}

std::string drawn(const Frame& frame, const std::vector<double>& x, const Curve& curve) {
  const std::string line = line_of(frame, x, curve.y, curve.stepped);
  std::string text;
  if (curve.filled) {
    std::string area = line;
    for (size_t i = x.size(); i-- > 0;) {
      area += frame.point(x[i], curve.base.empty() ? 0 : curve.base[i]) + " ";
    }
    text += fmt::format("<polygon class=\"area {}\" points=\"{}\"/>", curve.color, area);
  }
  return text + fmt::format("<polyline class=\"line {}\" points=\"{}\"/>", curve.color, line);
}

// The alignment of a label of a horizontal axis with its position.
const char* anchor(double percent) {
  return percent < kEdge ? "first" : percent > 100 - kEdge ? "last" : "";
}

std::string marks_html(const Chart& chart, const Frame& frame) {
  std::string text;
  double free_from = 0;
  for (const Mark& mark : chart.marks) {
    const double at = mark.x / frame.x.most * 100;
    if (at < free_from || at > 100 - kEdge / 2) continue;
    text += fmt::format("<span style=\"left:{:.2f}%\">{}</span>", at, escaped(mark.text));
    free_from = at + kMarkLabel;
  }
  if (text.empty()) return "";
  return fmt::format("<div class=\"named\">{}</div><div class=\"marks\">{}</div>",
                     escaped(chart.marks_name), text);
}

// The beginning of a drawing: its horizontal lines.
std::string svg_begin(const std::string& title, const Frame& frame) {
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {:g} {:g}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
      kWide, kHigh, escaped(title));
  for (double at = 0; at <= frame.y.most * (1 + 1e-9); at += frame.y.step) {
    const double y = (1 - at / frame.y.most) * kHigh;
    svg += fmt::format("<line class=\"grid\" x1=\"0\" x2=\"{:g}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                       kWide, y, y);
  }
  return svg;
}

std::string svg_of(const Chart& chart, const Frame& frame) {
  std::string svg = svg_begin(chart.title, frame);
  for (const Mark& mark : chart.marks) {
    const double x = mark.x / frame.x.most * kWide;
    if (x > kWide) continue;
    svg += fmt::format("<line class=\"mark\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"0\" y2=\"{:g}\"/>", x,
                       x, kHigh);
  }
  for (const Curve& curve : chart.curves) svg += drawn(frame, chart.x, curve);
  return svg + "</svg>";
}

// A drawing between its axes' labels: of the horizontal one, of every `each`th line.
std::string framed(const Frame& frame, const std::string& above, const std::string& svg,
                   int each = 1) {
  std::string rows;
  for (double at = 0; at <= frame.y.most * (1 + 1e-9); at += frame.y.step) {
    rows += fmt::format("<span style=\"bottom:{:.2f}%\">{}</span>", at / frame.y.most * 100,
                        frame.y.label(at));
  }
  std::string columns;
  for (double at = 0; at <= frame.x.most * (1 + 1e-9); at += each * frame.x.step) {
    const double place = at / frame.x.most * 100;
    columns += fmt::format("<span class=\"{}\" style=\"left:{:.2f}%\">{}</span>", anchor(place),
                           place, frame.x.label(at));
  }
  return fmt::format(
      "<div class=\"chart\">{}<div class=\"rows\">{}</div><div class=\"plot\">{}"
      "</div><div class=\"columns\">{}</div></div>",
      above, rows, svg, columns);
}

std::string legend(const Chart& chart) {
  std::string text = "<ul class=\"legend\">";
  for (const Curve& curve : chart.curves) {
    text += fmt::format("<li><i class=\"key {}\"></i>{}{}</li>", curve.color, escaped(curve.name),
                        curve.value.empty() ? "" : " <b>" + escaped(curve.value) + "</b>");
  }
  return text + "</ul>";
}

}  // namespace

std::string escaped(std::string_view text) {
  static constexpr std::pair<char, const char*> kEscapes[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string out;
  for (const char c : one_line(text)) {  // control characters are not allowed in a page
    const auto* escape = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                      [c](const auto& one) { return one.first == c; });
    escape != std::end(kEscapes) ? out.append(escape->second) : out.append(1, c);
  }
  return out;
}

std::string grouped(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", std::abs(value), decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  const size_t whole = std::min(text.find('.'), text.size());
  for (size_t at = whole; at > 3; at -= 3) text.insert(at - 3, ",");
  return value < 0 && text != "0" ? "-" + text : text;
}

std::string value_text(double value, Quantity quantity) {
  if (quantity == Quantity::kCount) return grouped(value, 1);
  if (quantity == Quantity::kSeconds && value < 1e-6) return value > 0 ? "< 1 µs" : "0 s";
  const Scale scale = scale_of(value, quantity);
  const double number = value / scale.size;
  const int decimals = number >= 100 || scale.size == 1 ? 0 : number >= 10 ? 1 : 2;
  const bool seconds = quantity == Quantity::kSeconds && scale.size == 1;
  return with_unit(grouped(number, seconds && number < 100 ? 2 : decimals), scale);
}

std::string percent(double part, double whole) {
  if (whole <= 0) return "-";
  const double share = part / whole * 100;
  if (share > 999) return "> 999 %";
  if (share > 99.95 && part < whole) return "> 99.9 %";
  if (share < 0.05 && part > 0) return "< 0.1 %";
  return fmt::format("{} %", grouped(share, 1));
}

std::string chart_html(const Chart& chart) {
  const std::string head = fmt::format("<section class=\"card\" id=\"{}\"><h2>{}</h2>",
                                       escaped(chart.id), escaped(chart.title));
  if (chart.x.empty()) return head + "<p class=\"note\">Nothing was recorded.</p></section>\n";
  double most = 0;
  for (const Curve& curve : chart.curves) {
    for (const double y : curve.y) most = std::max(most, y);
  }
  const Frame frame{axis_of(chart.x.back(), Quantity::kSeconds, false),
                    axis_of(most, chart.quantity, true)};
  return head + fmt::format("<p class=\"note\">{}</p>", escaped(chart.note)) + legend(chart) +
         framed(frame, marks_html(chart, frame), svg_of(chart, frame)) + "</section>\n";
}

std::string scatter_html(const Scatter& scatter) {
  const Axis axis = axis_of(scatter.most, Quantity::kCount, true);
  const Frame frame{axis, axis};
  std::string dots;
  // Lines of no length with round ends: they do not stretch with the drawing.
  for (size_t i = 0; i < scatter.x.size(); ++i) {
    dots += "M" + frame.point(std::min(scatter.x[i], axis.most), scatter.y[i]) + "h.01";
  }
  return fmt::format("<ul class=\"legend\"><li><i class=\"key {}\"></i>{}</li></ul>", scatter.color,
                     escaped(scatter.name)) +
         framed(frame,
                fmt::format("<div class=\"named\">{}</div><div class=\"marks\"></div>",
                            escaped(scatter.up)),
                svg_begin(scatter.name, frame) +
                    fmt::format("<path class=\"dots {}\" d=\"{}\"/></svg>", scatter.color, dots),
                2);
}

}  // namespace sluice::cli
