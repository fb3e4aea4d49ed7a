// The parts of the translation, one class and one .cpp file for each part of the language.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx.hpp"
#include "rewriter.hpp"

namespace translator {

// Marks where a kernel's may_poll() goes, which only files with polling loops get.
inline const std::string kMark = "\x01";

// Inline PTX, asm("...").
class AsmStatements : Rewriter {
  public:
    explicit AsmStatements(File& file) : Rewriter(file) {}
    void translate_asm(std::size_t word);

  private:
    std::string translated(Range range) const;
    std::string joined_literals(Range range) const;
    std::vector<PtxOperand> asm_operands(Range section) const;
};

// __device__, __constant__, __managed__.
class DeviceDeclarations : Rewriter {
  public:
    DeviceDeclarations(File& file, DeviceVariables device_variables, SharedArrays shared_arrays)
        : Rewriter(file),
          own_device_variables_(device_variables == DeviceVariables::own),
          watched_(shared_arrays == SharedArrays::in_gaps) {}
    bool is_variable(std::string_view name) const { return device_variables_.contains(name); }
    void translate_device(std::size_t i);
    void tell_of_device_variable(std::size_t name);
    void place_in_gaps();

  private:
    void note_device_variable(Range before_name);
    void tell_of_function_elsewhere(std::size_t word);
    bool opens_body(std::size_t parameters) const;
    void choose_constant_section(std::size_t word);
    bool is_const_variable(std::size_t begin) const;
    bool needs_gaps(Range before_name, bool is_array) const;
    bool has_value(std::size_t name, std::size_t end) const;
    void place_in_gaps(std::size_t begin, std::size_t name);
    std::size_t variable_name(Range declaration) const;
    bool is_declared_extern(std::string_view name) const;
    bool is_argument(std::size_t i) const;
    bool is_shared(Range declaration) const;

    bool own_device_variables_;
    bool watched_;
    std::set<std::string_view> device_variables_;
    // Where the declaration of each variable of the file begins, and its name.
    std::set<std::pair<std::size_t, std::size_t>> variables_;
};

// Calls of host functions in device code.
class HostFunctions : Rewriter {
  public:
    explicit HostFunctions(File& file) : Rewriter(file) {}
    void tell_of_host_function(std::size_t name);

  private:
    std::set<std::string_view> find_host_functions() const;

    std::optional<std::set<std::string_view>> host_functions_;
};

// Names of `__device__` variables and functions that host code uses as if they were the device's.
class HostNames : Rewriter {
  public:
    explicit HostNames(File& file) : Rewriter(file) {}
    void replace_variable(std::size_t name);
    void replace_function(std::size_t name);

  private:
    bool is_device_argument(std::size_t i) const;
    bool is_value(std::size_t i) const;
    bool is_of_host(std::size_t name) const;
    std::size_t begin_of_qualified(std::size_t name) const;
    std::string with_qualifiers(std::size_t name) const;
    int arguments_in(std::size_t open, std::size_t close) const;
    bool ends_condition(std::size_t colon) const;
    bool names_device_entity(std::size_t qualified) const;
    bool in_body(std::size_t i) const;
    bool declares(std::size_t name) const;
    void find_device_functions();

    struct DeviceFunction {
        int count = 0;       // definitions
        int parameters = 0;  // of its template
    };
    std::optional<std::map<std::string_view, DeviceFunction>> device_functions_;
    std::optional<std::map<std::string_view, DeviceFunction>> device_members_;
};

// Shifts by 32 bits and more.
class Shifts : Rewriter {
  public:
    explicit Shifts(File& file) : Rewriter(file) {}
    void translate_shift(std::size_t i);

  private:
    std::size_t begin_of_chain(std::size_t i) const;
    bool has_open_angle(std::size_t i) const;
    std::size_t end_of_amount(std::size_t i, bool assigns) const;
};

// Casts to pointers.
class PointerCasts : Rewriter {
  public:
    PointerCasts(File& file, SharedArrays shared_arrays)
        : Rewriter(file), watched_(shared_arrays == SharedArrays::in_gaps) {}
    void translate_named_cast(std::size_t i);
    void translate_cast(std::size_t open);

  private:
    void wrap(std::size_t first, std::size_t last);
    bool is_pointer_type(Range range) const;
    std::size_t end_of_operand(std::size_t i) const;

    bool watched_;
};

// kernel<<<...>>>(...)
class Launches : Rewriter {
  public:
    explicit Launches(File& file) : Rewriter(file) {}
    bool is_launch_bracket(std::size_t i, std::string_view bracket) const;
    void translate_launch(std::size_t open);
    void require_configuration(std::size_t name) const;

  private:
    std::size_t third_bracket(std::size_t i) const;
    std::string taken(Range range);
    std::size_t begin_of_callee(std::size_t launch) const;
    bool ends_called(std::size_t i) const;
    bool is_name(std::size_t i) const;
    void require_kernel(std::size_t launch) const;
    std::size_t behind_template_arguments(std::size_t open) const;
    std::size_t before_template_arguments(std::size_t close) const;
    std::size_t plain_function(std::string_view name) const;
};

// A kernel's `template <...>` or nothing, its parameters and its body.
struct KernelBody {
    Range head;
    Range parameters;
    std::size_t brace;
};

// __global__
class Kernels : Rewriter {
  public:
    explicit Kernels(File& file) : Rewriter(file) {}
    bool is_kernel(std::string_view name) const { return kernels_.contains(name); }
    void translate_kernel(std::size_t global);
    // Kernels with a body, for Rows.
    const std::vector<KernelBody>& bodies() const { return bodies_; }

  private:
    std::size_t skip_decorations(std::size_t i) const;
    std::string decoration_argument(Range range, std::string_view name) const;
    bool mentions_volatile(Range range) const;
    std::string grid_constants(Range parameters);
    bool asks_for_kinds();
    void require_void(Range head) const;
    void tell_of_references(Range parameters) const;
    std::string parameter_types(Range parameters) const;

    std::set<std::string_view> kernels_;
    std::vector<KernelBody> bodies_;
    std::optional<bool> asks_for_kinds_;  // computed for the first kernel with a __grid_constant__
};

// Words of known meaning.
bool is_number_type(std::string_view word);
bool is_place(std::string_view word);
// Functions whose result depends on their arguments alone.
bool is_mathematical(std::string_view word);

// Code of which each word is a known one, so that no call of the runtime hides in it: a guess is
// not enough where threads run in loops.
class KnownWords : protected Rewriter {
  protected:
    KnownWords(File& file, Dialect dialect) : Rewriter(file), dialect_(dialect) {}

    // Forgets the names of another kernel, and takes this one's parameters.
    bool begin_kernel(const KernelBody& kernel);
    // The token of a body, and the declaration or the call that it begins.
    bool is_known(std::size_t i);
    bool declare_local(std::size_t i);
    bool is_type_word(std::size_t i) const;
    std::size_t behind_type(std::size_t i) const;
    bool is_number(std::string_view name) const;
    // In the call that prepares a launch of the kernel.
    void replace_in_call(const KernelBody& kernel, std::string_view word, const std::string& by);
    // ".prepare_rows<::cuda_on_cpu::all_plain<T, U>>("
    std::string prepare(std::string_view function) const;
    // `threadIdx` becomes `place.threadIdx`, and the like.
    void qualify_places(Range range, std::string_view with);

    Dialect dialect_;
    std::set<std::string_view> types_;   // parameters of the template
    std::set<std::string_view> names_;   // of variables
    std::set<std::string_view> shared_;  // `__shared__` variables of a kernel in regions
    std::set<std::string_view> called_;  // functions of the program's own
    bool uses_vectors_ = false;
    bool has_vector_operators();
    void note_vectors(Range range);
    bool is_unary(std::size_t i) const;
    // Those that the kernel calls.
    void inline_functions();

  private:
    bool is_known_word(std::size_t i);
    bool declare_parameters(const KernelBody& kernel);
    bool is_defined_here(std::string_view name) const;
    bool is_outside(std::size_t i) const;

    // A function that only computes a value: `begin` ... `type` `name` `open` ... `end`.
    struct OwnFunction {
        std::size_t begin;
        std::size_t type;
        std::size_t name;
        std::size_t open;
        std::size_t end;
        bool is_inline;
    };
    bool calls_own_function(std::size_t i);
    std::optional<OwnFunction> find_own_function(std::string_view name);
    bool declare_values(Range parameters);
    bool only_computes_value(Range body, bool divides);
    std::string only_functions() const;

    std::map<std::string_view, std::optional<OwnFunction>> own_functions_;
    bool in_own_function_ = false;
    std::optional<bool> has_vector_operators_;
};

// Kernels whose threads only compute: see cuda_on_cpu/rows.h.
class Rows : KnownWords {
  public:
    Rows(File& file, Dialect dialect) : KnownWords(file, dialect) {}
    // When all else is translated: a body in which that has changed something does not qualify.
    void translate_kernel(const KernelBody& kernel);

  private:
    bool only_computes(const KernelBody& kernel);
};

// Kernels whose code between barriers is known: see cuda_on_cpu/regions.h. All threads must take
// the same way to each barrier, so the conditions around it are uniform: computed from the kernel's
// parameters, constants, the place of the block, and variables that all threads change alike.
class Regions : KnownWords {
  public:
    Regions(File& file, Dialect dialect) : KnownWords(file, dialect) {}
    void translate_kernel(const KernelBody& kernel);

  private:
    enum class Kind {
        uniform,   // the block has one
        computed,  // from uniform values and the thread's place, by each region that uses it
        kept       // each thread has one, which lasts from one region to the next
    };
    // A variable that is declared outside of all statements of one region.
    struct Variable {
        std::string_view name;
        Kind kind;
        Range declaration;
        std::string type;    // if it is kept
        std::size_t region;  // that declares it
        bool lasts = false;  // beyond this region
    };
    struct Region {
        Range statements;
        std::vector<std::size_t> visible;  // variables, the innermost last
    };
    // `for (i = 0; ...)` with a barrier inside, and with an `i` that is declared before it. Inside
    // it is uniform.
    struct Loop {
        std::size_t begin;
        std::size_t end;
        std::size_t variable;
    };
    // Where a statement is.
    struct Around {
        bool in_loop;
        bool in_block;
    };

    bool is_known_body();
    bool is_known_directive(std::size_t i) const;
    std::size_t shared_word(std::size_t i) const;
    std::size_t behind_shared_declaration(std::size_t i);
    bool is_barrier(std::size_t i) const;
    bool has_barrier(Range range) const;
    bool mentions(Range range, std::string_view name) const;
    bool is_declared_at(std::size_t name) const;
    bool hides_change(std::size_t i) const;
    bool is_pointee(Range range) const;
    bool hides_another(std::string_view name) const;
    bool is_pure_size(Range declaration) const;
    bool is_change(std::size_t i) const;
    bool is_changed(std::string_view name, Range range) const;
    const Variable* find(std::string_view name) const;
    bool is_pure(Range range, bool uniform, bool may_assign = false);
    bool is_variable_of_device(std::string_view name);

    // Variables that all threads change alike: uniform_variables.cpp.
    using Names = std::set<std::string_view>;
    struct Declared {
        std::string_view name;
        Range statement;
        Range value;
    };
    void find_uniform_variables();
    void collect_statements(Range list);
    void collect_statement(Range statement);
    void collect_declaration(std::size_t begin);
    bool is_uniform_value(Range range, const Names& locals);
    bool is_uniform_word(std::size_t i, const Names& locals);
    bool is_uniform_change(Range range, const Names& locals);
    bool is_uniform_statement(Range statement, Names locals, bool is_whole);
    bool changes_uniform(Range statement) const;
    bool plan_uniform_statement(Range statement);

    bool plan_body();
    bool plan_statements(Range list, Around around);
    bool plan_statement(Range statement, Around around);
    bool plan_loop(Range statement);
    bool plan_while(Range statement);
    bool plan_branch(Range statement, Around around);
    bool plan_block(std::size_t brace, Around around);
    bool plan_declaration(Range statement, std::size_t first, Around around);
    bool is_uniform_jump(Range statement, Around around);
    bool jumps_inside(Range statement) const;
    bool add_to_region(Range statement, Around around);
    void close_region();

    void find_later_uses();
    void qualify_places();
    void keep_declared_variables();
    void insert_regions();
    std::string row(const Variable& variable) const;
    std::string begin_region(std::size_t region);
    std::string translated(Range range) const;

    Range body_;
    Names uniform_;  // variables that may change, in the same way for all threads
    std::vector<Declared> declarations_;
    std::vector<Range> statements_;
    std::set<std::string_view> parameters_;
    std::vector<Variable> variables_;
    std::vector<std::size_t> visible_;
    std::vector<Region> regions_;
    std::vector<Loop> loops_;
    std::vector<std::size_t> barriers_;
    std::optional<std::set<std::string_view>> device_variables_;
    bool is_open_ = false;         // the last region
    bool may_have_ended_ = false;  // a thread, by `return`
};

// `extern __shared__ T name[]...;` outside functions: each function that uses the name gets a
// declaration of its own. `__shared__ T name;` outside functions: it gets a call that poisons it.
struct GlobalShared {
    std::string name;
    std::string text;
    std::size_t behind;  // the declaration
};

// __shared__
class SharedVariables : Rewriter {
  public:
    SharedVariables(File& file, SharedArrays shared_arrays)
        : Rewriter(file), gaps_(shared_arrays == SharedArrays::in_gaps) {}
    void translate_shared(std::size_t shared);
    void declare_global_shared();

  private:
    void align(Range declaration);
    void refuse_initialisers(Range declaration) const;
    void move_alignment_to_front(Range declaration);
    std::size_t first_identifier(Range range) const;
    void translate_dynamic_shared(std::size_t shared, std::size_t end);
    bool declares_itself(std::size_t body, std::string_view name) const;
    bool is_constexpr(std::size_t body) const;
    void enter_where_used(std::size_t begin, std::size_t end);
    std::size_t end_of_template_head(std::size_t begin) const;
    void call_with_arguments(std::string_view name, std::size_t behind);

    bool gaps_;
    std::vector<GlobalShared> global_shared_;
};

// Names that nvcc finds and g++ does not: member templates of dependent types without the word
// `template`, and members with the name of their own type.
class LooseNames : Rewriter {
  public:
    explicit LooseNames(File& file) : Rewriter(file) {}
    void add_template_keyword(std::size_t name);
    void qualify_own_type(std::size_t name);

  private:
    void find_member_templates();
    bool is_dependent_scope(std::size_t colon) const;
    bool is_type_parameter(std::string_view name) const;
    bool in_template(std::size_t i) const;
    bool in_class(std::size_t i) const;
    std::string scope_of_type(std::string_view name) const;

    std::optional<std::set<std::string_view>> member_templates_;
};

// A volatile variable, or a function that declares one. Its scope is the function that this brace
// opens; kNone: the file.
struct VolatileName {
    std::string_view text;
    std::size_t function;
};

// A function that loads with a cache hint, and the brace that opens its body.
struct LoadingFunction {
    std::string_view name;
    std::size_t brace;
};

// Loops that poll memory and so wait for other threads.
class WaitingLoops : Rewriter {
  public:
    explicit WaitingLoops(File& file) : Rewriter(file) {}
    const std::vector<VolatileName>& volatile_names() const { return volatile_names_; }
    void find_volatile_names();
    bool translate_empty_loop(std::size_t loop);
    void translate_waiting_loop(std::size_t loop);
    void translate_goto(std::size_t jump);

  private:
    std::size_t label_before(std::size_t i, std::string_view name) const;
    void replace_loads(Range range);
    bool repeats_itself(Range range) const;
    bool is_compound(std::size_t i) const;
    bool mentions_volatile(Range range) const;
    void note_loading_function(std::size_t i);
    void note_volatile(std::size_t i);
    std::size_t enclosing_parenthesis(std::size_t i) const;
    std::size_t skip_to_body(std::size_t parameters_end) const;
    std::size_t name_of_function(std::size_t brace) const;

    std::vector<VolatileName> volatile_names_;
    std::vector<LoadingFunction> loading_functions_;
};

// Local variables of device code that are added to before anything has set them.
class UnsetVariables : Rewriter {
  public:
    explicit UnsetVariables(File& file) : Rewriter(file) {}
    // `word`: a type's name, or `fragment`.
    void look_at_declaration(std::size_t word);

  private:
    enum class Use { read, changed, assigned, passed };

    bool is_name_before_colons(std::size_t i) const;
    bool in_block(std::size_t i) const;
    std::size_t behind_subscripts(std::size_t name) const;
    void look_at_uses(std::size_t name, std::size_t from);
    Use use_at(std::size_t i) const;
    std::size_t end_of_loops(std::size_t use, std::size_t name) const;
};

// Loads from shared memory of what another lane stores, without synchronisation in between.
class LaneExchanges : Rewriter {
  public:
    explicit LaneExchanges(File& file) : Rewriter(file) {}
    // The first such load of `name` in a function, whose `{` is given; kNone: there is none.
    std::size_t find(std::string_view name, std::size_t function);

  private:
    struct Access {
        std::size_t name;
        Range index;
        std::size_t end;  // of a store's statement
        int interval;     // between two synchronisations
        bool stores;
    };
    struct Condition {
        std::vector<std::string_view> words;
        Range body;
        std::size_t end;  // behind the else branch, if there is one
    };

    std::vector<std::string_view> words_in(Range range) const;
    bool is_lane_word(std::string_view word) const;
    bool is_number_of_thread(Range value) const;
    void find_lane_variables();
    void find_conditions();
    std::vector<Access> find_accesses();
    bool ends_branches_that_synchronise(std::size_t i) const;
    bool begins_lambda(std::size_t i) const;
    bool may_synchronise(std::size_t i) const;
    bool changes_lane(std::size_t i) const;
    std::string index_of(const Access& access) const;
    bool is_lane(Range index) const;
    std::optional<std::string_view> distance_to_other_lane(const Access& load) const;
    bool is_step_of_loop(std::string_view variable, std::size_t i) const;
    std::vector<Range> loops_around(std::size_t i) const;
    bool is_for_many_lanes(const Access& access) const;
    bool is_out_of_reach(const Access& store, const Access& load, std::string_view distance) const;
    bool meet_in_loop(const Access& store, const Access& load) const;

    std::string_view name_;
    Range function_{};
    std::set<std::string_view> lanes_;  // variables with the number of the thread or lane
    std::vector<Condition> conditions_;
    std::vector<std::size_t> ends_of_intervals_;
};

// Code that relies on the lanes of a warp running each statement together, as before Volta.
class WarpSynchronousCode : Rewriter {
  public:
    explicit WarpSynchronousCode(File& file) : Rewriter(file), lane_exchanges_(file) {}
    void find_warp_synchronous_code(const std::vector<VolatileName>& volatile_names);

  private:
    // `name[index] = value;`, also with `+=` and the like.
    struct Store {
        std::size_t name;
        std::size_t assignment;
        std::size_t end;
        bool exchanges;  // the value is computed from an element of the same array with another index
    };

    // By what the lanes see each other's stores.
    enum class Means { is_volatile, fences, nothing };

    bool is_volatile(Range declaration) const;
    void look_at_stores(const VolatileName& name, Means means);
    void name_and_run_in_step(std::size_t exchange, std::string_view name, Means means,
                              const std::vector<Store>& stores);
    Store store_at(std::size_t i) const;
    bool repeats_without_sync(const Store& store, std::size_t function) const;
    void store_in_step(const Store& store);

    LaneExchanges lane_exchanges_;
};

}  // namespace translator
