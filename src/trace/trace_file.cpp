#include "src/trace/trace_file.hpp"

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include "src/trace/hdf5_handle.hpp"

namespace hcp {
namespace {

/// One extendable table of the open file.
struct Table {
  std::string name;  ///< for messages, "/events of run.h5"
  Hdf5Datatype row_type;
  Hdf5Dataset dataset;
  hsize_t rows = 0;
};

Hdf5Datatype make_text_type(std::size_t bytes) {
  Hdf5Datatype type{check_hdf5(H5Tcopy(H5T_C_S1), "H5Tcopy")};
  check_hdf5(H5Tset_size(type.get(), std::max<std::size_t>(bytes, 1)), "H5Tset_size");
  check_hdf5(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "H5Tset_strpad");
  check_hdf5(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset");
  return type;
}

Hdf5Datatype make_column_type(const Column& column) {
  switch (column.type) {
    case ColumnType::int32:
      return Hdf5Datatype{check_hdf5(H5Tcopy(H5T_NATIVE_INT32), "H5Tcopy")};
    case ColumnType::int64:
      return Hdf5Datatype{check_hdf5(H5Tcopy(H5T_NATIVE_INT64), "H5Tcopy")};
    case ColumnType::float64:
      return Hdf5Datatype{check_hdf5(H5Tcopy(H5T_NATIVE_DOUBLE), "H5Tcopy")};
    case ColumnType::text:
      break;
  }
  return make_text_type(column.size);
}

/// The row struct as HDF5 sees it in memory, columns in the order of the table.
Hdf5Datatype make_row_type(std::size_t row_bytes, std::span<const Column> columns) {
  Hdf5Datatype type{check_hdf5(H5Tcreate(H5T_COMPOUND, row_bytes), "H5Tcreate")};
  for (const Column& column : columns) {
    check_hdf5(H5Tinsert(type.get(), column.name, column.offset, make_column_type(column).get()),
               std::string{"H5Tinsert of "} + column.name);
  }
  return type;
}

/// @param owner for messages, "run.h5" or "/events of run.h5"
void write_attribute(hid_t object, const std::string& owner, const std::string& name, hid_t type,
                     const void* value) {
  const std::string what = "writing the attribute " + name + " of " + owner;
  const Hdf5Dataspace scalar{check_hdf5(H5Screate(H5S_SCALAR), "H5Screate")};
  const Hdf5Attribute attribute{
      check_hdf5(H5Acreate2(object, name.c_str(), type, scalar.get(), H5P_DEFAULT, H5P_DEFAULT),
                 what + " (H5Acreate2)")};
  check_hdf5(H5Awrite(attribute.get(), type, value), what + " (H5Awrite)");
}

void write_text_attribute(hid_t object, const std::string& owner, const std::string& name,
                          const std::string& text) {
  write_attribute(object, owner, name, make_text_type(text.size()).get(), text.c_str());
}

template <typename Row>
Table create_table(hid_t file, const std::filesystem::path& path) {
  const std::vector<Column> columns = Row::columns();
  Table table;
  table.name = std::string{"/"} + Row::table + " of " + path.string();
  table.row_type = make_row_type(sizeof(Row), columns);
  const Hdf5Datatype stored_type{check_hdf5(H5Tcopy(table.row_type.get()), "H5Tcopy")};
  check_hdf5(H5Tpack(stored_type.get()), "H5Tpack");  // no padding bytes on disk

  constexpr hsize_t chunk_bytes = 1 << 16;
  const hsize_t none = 0;
  const hsize_t unlimited = H5S_UNLIMITED;
  const hsize_t chunk = std::max<hsize_t>(1, chunk_bytes / sizeof(Row));
  const Hdf5Dataspace space{check_hdf5(H5Screate_simple(1, &none, &unlimited), "H5Screate_simple")};
  const Hdf5PropertyList properties{check_hdf5(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate")};
  check_hdf5(H5Pset_chunk(properties.get(), 1, &chunk), "H5Pset_chunk");
  table.dataset = Hdf5Dataset{check_hdf5(H5Dcreate2(file, Row::table, stored_type.get(), space.get(),
                                                    H5P_DEFAULT, properties.get(), H5P_DEFAULT),
                                         "creating " + table.name + " (H5Dcreate2)")};
  for (const Column& column : columns) {
    write_text_attribute(table.dataset.get(), table.name, std::string{column.name} + "_unit", column.unit);
  }
  return table;
}

/// Writes over rows [first, first + count) of the table, which must exist.
void write_rows(const Table& table, hsize_t first, hsize_t count, const void* rows) {
  const Hdf5Dataspace stored{check_hdf5(H5Dget_space(table.dataset.get()), "H5Dget_space of " + table.name)};
  const Hdf5Dataspace in_memory{check_hdf5(H5Screate_simple(1, &count, nullptr), "H5Screate_simple")};
  check_hdf5(H5Sselect_hyperslab(stored.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr),
             "H5Sselect_hyperslab of " + table.name);
  check_hdf5(
      H5Dwrite(table.dataset.get(), table.row_type.get(), in_memory.get(), stored.get(), H5P_DEFAULT, rows),
      "writing " + table.name + " (H5Dwrite)");
}

void append_rows(Table& table, hsize_t count, const void* rows) {
  if (count == 0) return;
  const hsize_t total = table.rows + count;
  check_hdf5(H5Dset_extent(table.dataset.get(), &total), "writing " + table.name + " (H5Dset_extent)");
  write_rows(table, table.rows, count, rows);
  table.rows = total;
}

Hdf5PropertyList file_access() {
  Hdf5PropertyList access{check_hdf5(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate")};
  check_hdf5(H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST),
             "H5Pset_libver_bounds");  // the single-writer-multiple-reader mode needs it
#if H5_VERSION_GE(1, 10, 7)
  // Lustre is often mounted without flock; an unlocked trace is better than none.
  check_hdf5(H5Pset_file_locking(access.get(), true, true), "H5Pset_file_locking");
#endif
  return access;
}

void require_new_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
    throw std::invalid_argument{"the trace file " + path.string() +
                                " exists and is never overwritten; give another name with --trace"};
  }
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(directory, ignored)) {
    throw std::invalid_argument{"the directory " + directory.string() + " of the trace file " +
                                path.filename().string() + " does not exist; create it first"};
  }
}

}  // namespace

/// Open while `intact`. After an error HDF5 can neither flush nor close the file, and tries to for ever or
/// crashes; so the ids are given up. On disk the file is then as after a kill.
struct TraceFile::Hdf5 {
  std::filesystem::path path;
  Hdf5File file;
  Table cells, ranks, placement, events, memory, bytes, results;
  bool intact = false;

  ~Hdf5() {
    if (intact && H5Fflush(file.get(), H5F_SCOPE_GLOBAL) >= 0) return;
    for (Table* table : {&cells, &ranks, &placement, &events, &memory, &bytes, &results}) {
      table->dataset.abandon();
    }
    file.abandon();
  }

  /// Runs `write`; if it throws, the file takes nothing more.
  template <typename Write>
  void guarded(const Write& write) {
    if (!std::exchange(intact, false)) {
      throw TraceError{"the trace file " + path.string() + " takes no more rows after an earlier error"};
    }
    write();
    intact = true;
  }

  template <typename Row>
  void append(Table& table, std::span<const Row> rows) {
    guarded([&] { append_rows(table, rows.size(), rows.data()); });
  }
};

TraceFile::TraceFile(std::unique_ptr<Hdf5> hdf5) : hdf5_{std::move(hdf5)} {}
TraceFile::TraceFile(TraceFile&&) noexcept = default;
TraceFile& TraceFile::operator=(TraceFile&&) noexcept = default;
TraceFile::~TraceFile() = default;

TraceFile TraceFile::create(const std::filesystem::path& path, const NamedTexts& provenance) {
  require_new_file(path);
  std::signal(SIGXFSZ, SIG_IGN);
  silence_hdf5();
  auto hdf5 = std::make_unique<Hdf5>();
  hdf5->path = path;
  hdf5->file = Hdf5File{check_hdf5(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, file_access().get()),
                                   "creating the trace file " + path.string() + " (H5Fcreate)")};
  const hid_t file = hdf5->file.get();
  write_text_attribute(file, path.string(), "format", "hcp trace");
  write_attribute(file, path.string(), "schema_version", H5T_NATIVE_INT, &trace_schema_version);
  for (const auto& [name, text] : provenance) write_text_attribute(file, path.string(), name, text);
  hdf5->cells = create_table<CellRow>(file, path);
  hdf5->ranks = create_table<RankRow>(file, path);
  hdf5->placement = create_table<PlacementRow>(file, path);
  hdf5->events = create_table<EventRow>(file, path);
  hdf5->memory = create_table<MemoryRow>(file, path);
  hdf5->bytes = create_table<BytesRow>(file, path);
  hdf5->results = create_table<ResultRow>(file, path);
  check_hdf5(H5Fstart_swmr_write(file), "writing the trace file " + path.string() + " (H5Fstart_swmr_write)");
  hdf5->intact = true;
  return TraceFile{std::move(hdf5)};
}

void TraceFile::append(std::span<const CellRow> rows) {
  hdf5_->append(hdf5_->cells, rows);
}
void TraceFile::append(std::span<const RankRow> rows) {
  hdf5_->append(hdf5_->ranks, rows);
}
void TraceFile::append(std::span<const PlacementRow> rows) {
  hdf5_->append(hdf5_->placement, rows);
}
void TraceFile::append(std::span<const EventRow> rows) {
  hdf5_->append(hdf5_->events, rows);
}
void TraceFile::append(std::span<const MemoryRow> rows) {
  hdf5_->append(hdf5_->memory, rows);
}
void TraceFile::append(std::span<const BytesRow> rows) {
  hdf5_->append(hdf5_->bytes, rows);
}
void TraceFile::append(std::span<const ResultRow> rows) {
  hdf5_->append(hdf5_->results, rows);
}

void TraceFile::rewrite(std::span<const RankRow> rows) {
  if (rows.size() > hdf5_->ranks.rows) {
    throw std::invalid_argument{std::to_string(rows.size()) + " rows to rewrite in " + hdf5_->ranks.name +
                                ", which has " + std::to_string(hdf5_->ranks.rows)};
  }
  hdf5_->guarded([&] { write_rows(hdf5_->ranks, 0, rows.size(), rows.data()); });
}

void TraceFile::flush() {
  hdf5_->guarded([&] {
    check_hdf5(H5Fflush(hdf5_->file.get(), H5F_SCOPE_GLOBAL),
               "writing the trace file " + hdf5_->path.string() + " (H5Fflush)");
  });
}

const std::filesystem::path& TraceFile::path() const {
  return hdf5_->path;
}

}  // namespace hcp
