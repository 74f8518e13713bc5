#include <algorithm>
#include <atomic>
#include <chrono>
#include <complex>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>
#include <regex>
#include <set>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>
struct Shape { virtual double area() const = 0; virtual ~Shape() = default; };
struct Circle : Shape { double r; explicit Circle(double r) : r(r) {} double area() const override { return 3.0 * r * r; } };
struct Square : virtual Shape { double s; explicit Square(double s) : s(s) {} double area() const override { return s * s; } };
struct Odd : Square { Odd() : Square(3) {} ~Odd() { std::cout << "odd gone\n"; } };
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
template <class... T> auto total(T... t) { return (t + ...); }
std::map<std::string, int> registry = {{"a", 1}, {"b", 2}};
int main() {
  std::regex re(R"((\w+)@(\w+)\.com)");
  std::smatch m;
  std::string s = "mail bob@example.com now";
  if (std::regex_search(s, m, re)) std::cout << m[1] << " at " << m[2] << "\n";
  std::mutex mu;
  std::condition_variable cv; int sum = 0; bool go = false;
  std::vector<std::thread> ts;
  for (int i = 0; i < 8; i++) ts.emplace_back([&, i] { std::unique_lock l(mu); cv.wait(l, [&] { return go; }); sum += i; });
  { std::lock_guard l(mu); go = true; } cv.notify_all(); for (auto &t : ts) t.join();
  std::cout << sum << "\n";
  auto f = std::async(std::launch::async, [] { return fib(15); });
  std::cout << f.get() << "\n";
  std::promise<int> pr; auto fu = pr.get_future();
  std::thread th([&] { try { throw std::runtime_error("boom"); } catch (...) { pr.set_exception(std::current_exception()); } });
  try { fu.get(); } catch (std::exception &e) { std::cout << e.what() << "\n"; } th.join();
  std::vector<std::unique_ptr<Shape>> v; v.push_back(std::make_unique<Circle>(2)); v.push_back(std::make_unique<Square>(2)); v.push_back(std::make_unique<Odd>());
  double a = 0; for (auto &p : v) a += p->area();
  std::cout << a << "\n"; v.clear();
  std::variant<int, std::string> va = "text";
  std::visit([](auto &x) { std::cout << x << "\n"; }, va);
  std::unordered_map<std::string, std::vector<int>> um; for (int i = 0; i < 100; i++) um[std::to_string(i % 7)].push_back(i);
  std::cout << um["3"].size() << "\n";
  auto r = std::views::iota(1, 20) | std::views::filter([](int x) { return x % 3 == 0; }) | std::views::transform([](int x) { return x * x; });
  std::cout << std::accumulate(r.begin(), r.end(), 0) << " " << total(1, 2.5, 3) << "\n";
  std::mt19937 rng(42);
  std::vector<int> w(50);
  std::generate(w.begin(), w.end(), [&] { return int(rng() % 100); });
  std::sort(w.begin(), w.end());
  std::cout << w[0] << w[49] << "\n";
  std::shared_ptr<int> sp = std::make_shared<int>(5);
  std::weak_ptr<int> wp = sp;
  std::cout << wp.use_count() << *wp.lock() << "\n";
  std::stringstream ss; ss << 1 << ' ' << 2.5; int i; double d; ss >> i >> d;
  std::cout << i + d << "\n";
  std::call_once(*new std::once_flag, [] { std::cout << "once\n"; });
  std::complex<double> c(1, 2);
  std::cout << c * c << "\n";
  thread_local std::string tl = "tl";
  std::thread([&] { tl += "x";
  std::cout << tl << "\n"; }).join();
  for (auto &[k, x] : registry) std::cout << k << x;
  std::cout << std::endl;
  std::packaged_task<int(int)> pt([](int x) { return x + 1; }); auto pf = pt.get_future(); pt(4);
  std::cout << pf.get() << "\n";
  std::vector<float> fa(1000), fb(1000, 2); for (int k = 0; k < 1000; k++) fa[k] = fb[k] * k;
  std::cout << std::accumulate(fa.begin(), fa.end(), 0.0) << "\n";
  return registry.size() == 2 ? 7 : 0;
}
