import Foundation
import PackagePlugin

/// Generates the classes of the models in a target while it is built, into the build folder. Each model becomes one file.
@main struct GenerateClassesInBuild: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
    let tool = try context.tool(named: "HoldfastGenerate")
    return Models.paths(in: target.directoryURL).map { model in
      let output = context.pluginWorkDirectoryURL.appending(path: model.deletingPathExtension().lastPathComponent + "+Classes.swift")
      return .buildCommand(
        displayName: "Generating classes of \(model.lastPathComponent)", executable: tool.url,
        arguments: [model.path, "--single-file", output.path], inputFiles: Models.files(in: model), outputFiles: [output])
    }
  }
}

/// The models in a folder.
enum Models {
  static func paths(in folder: URL) -> [URL] {
    // Hidden folders contain builds and checkouts.
    entries(folder).filter { !$0.lastPathComponent.hasPrefix(".") }.flatMap { entry -> [URL] in
      if ["xcdatamodeld", "xcdatamodel"].contains(entry.pathExtension) { return [entry] }
      return isFolder(entry) ? paths(in: entry) : []
    }
  }

  /// All files of a model, so that a change of any generates the classes again.
  static func files(in folder: URL) -> [URL] { entries(folder).flatMap { isFolder($0) ? files(in: $0) : [$0] } }

  private static func entries(_ folder: URL) -> [URL] {
    // Xcode's mark of the current version is a hidden file.
    let entries = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: [.isDirectoryKey])) ?? []
    return entries.sorted { $0.path < $1.path }
  }

  private static func isFolder(_ entry: URL) -> Bool {
    (try? entry.resourceValues(forKeys: [.isDirectoryKey]))?.isDirectory == true
  }
}
